"""Make the files of a module's own code that are compiled and linked, with symbols renamed for the module.

TVM's generated code assumes that it is alone in an image. Every archive defines ``TVMSystemLibEntryPoint``, calls
``TVMBackendAllocWorkspace``, and in some versions of the format has an entry function with a fixed name. Two archives
in one image would share these symbols: the linker refuses the definitions, or, in static libraries, takes the first one
without a message, and one network then uses the workspace of the other.

So a source is not compiled itself but included by a *unit*, which defines the module it belongs to. The data::

    codegen/host/src/default_lib0.c              as exported, and unchanged
    executor/default_lib0.c                      its unit, which builds compile instead

    #define MLF_MODULE kws                       the runtime's headers append it to every symbol of the runtime
    #define tvm__run_func mlf_kws_packed_run     symbols in ``renamed``: entries that do not contain the module's name
    #include ".../tvm/runtime/crt/module.h"      the runtime's headers, so that TVM's in the firmware have no effect
    #include "../codegen/host/src/default_lib0.c"

The rules:

1. The exported file is never edited, so that its hash, debug lines and licence stay. Preprocessor macros rename.
2. A compiled object has no preprocessor: it is copied with the same symbols renamed in its symbol table
   (``c_analysis.renamed_object``).
3. A source that TVM made invalid, because its registry declares functions with other parameters than they have, cannot
   be included. It is copied into its unit with the real declarations, on lines of the same number, behind a ``#line``.
4. A unit has the name of its source. If two sources have the same name, both have their folders in it
   (``unit_names``): builds that stop at a changed file list rely on names that do not depend on other modules.
5. Pools that a source defines as arrays may be in the shared workspace: macros before the include rename the arrays
   out of the way, and definitions after it place them (``pools``).
6. ``owner_name`` adds ``_module`` if the module has the name of a symbol that is renamed in the same unit: otherwise
   ``#define`` would also replace the module's name in ``MLF_MODULE``.

For example, a module ``kws`` with the sources ``host/src/lib0.c`` and ``host/lib/lib1.o`` has the units
``executor/lib0.c``, which includes the first, and ``executor/lib1.o``, a copy of the second in which
the runtime's symbols end with ``_kws``.

This module does not decide which modules need units: ``executables`` does, and the native compiler's code for the AOT
executor needs none. It does not print the function with the C interface (``entry``, ``graph_source``), and does not
compile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from mlfbuild.c_analysis import OBJECT_SUFFIXES, renamed_object, repeated_declarations, without_repeated_declarations
from mlfbuild.core import listed
from mlfbuild.executor.kernels import Kernels
from mlfbuild.executor.pools import PlacedPools, pools_of
from mlfbuild.executor.runtime import BUNDLED_HEADER, FOLDER, OBJECTS_HEADER, RUNTIME_NAME, own_names
from mlfbuild.library import BACKEND, CodegenFile, Content, Module, sanitize_name
from mlfbuild.library.cgen import LICENCE

_FIRST = ("tvm/runtime/crt/module.h", "tvm/runtime/metadata_types.h")
"""Headers that a unit includes before its source, so that headers of TVM in the firmware have no effect."""

_TAKEN_AS_IT_IS = """\
/* TVM's code passes int * for int32_t * and calls undeclared functions, which recent compilers refuse. */
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#pragma GCC diagnostic ignored "-Wimplicit-function-declaration"
#endif"""
_FORMATS = """\
#include <inttypes.h>
#ifndef PRIu64 /* as with newlib, which some toolchains have without it */
#define PRIu64 "llu"
#endif
"""


def unit_names(path: PurePosixPath) -> tuple[PurePosixPath, PurePosixPath]:
    """Return the two possible paths of the unit of ``path`` in the tree: by file name, or with its folders.

    Which of the two is used depends on the other files of the module; see rule 4 above.
    """
    return PurePosixPath(FOLDER, path.name), PurePosixPath(FOLDER, "_".join(path.parts[1:]))


def owner_name(module: str, renamed: Mapping[str, str]) -> str:
    """Return the suffix of the runtime's names for ``module``: its name, unless that is among ``renamed``.

    ``renamed`` are macros of the unit, which would also replace an equal suffix.
    """
    name = sanitize_name(module)
    return f"{name}_module" if name in renamed else name


def units(
    kernels: Kernels, renamed: Mapping[str, str], headers: Sequence[str] = (), pools: Sequence[PlacedPools] = ()
) -> dict[str, Content]:
    """Return the units of a module: path in the tree -> content.

    ``renamed`` has further symbols to rename, ``headers`` are included before each source, and ``pools`` are in the
    shared workspace. Raises ``InputFileError`` for an object whose symbols cannot be renamed.
    """
    times = Counter(file.path.name for file in kernels.files)
    module = kernels.module
    found: dict[str, Content] = {
        str(unit_names(PurePosixPath("codegen", file.path))[times[file.path.name] > 1]): (
            _object(module.name, file, renamed)
            if file.path.suffix in OBJECT_SUFFIXES
            else _source(module, f"codegen/{file.path}", renamed, headers) + _code(file, pools_of(pools, file.path))
        )
        for file in kernels.files
    }
    if module.runtime:
        unit = f"{FOLDER}/{module.name}_{PurePosixPath(BACKEND).name}"
        found[unit] = _source(module, BACKEND, renamed, ()) + f'{_FORMATS}#include "../{BACKEND}"\n'.encode()
    return found


def _code(file: CodegenFile, pools: PlacedPools | None) -> bytes:
    """Return the code of a source between the lines that move the ``pools`` it defines into the shared workspace."""
    if pools is None:
        return _text(file)
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (pools.macros(), pools.definition()))
    return before.encode() + _text(file) + after.encode()


def _text(file: CodegenFile) -> bytes:
    """Return the include of a source, or its text with the real declarations of functions that it declares twice."""
    text = bytes(file.content).decode("latin-1")
    repeated = repeated_declarations(text)
    if not repeated:
        return f'#include "../codegen/{file.path}"\n'.encode()
    lines = listed([f"line {each.line}" for each in repeated])
    note = (
        f"/* TVM declares functions twice with different types, so {file.path.name} does not compile. This is a copy "
        f"of it,\n   with the real declarations of functions in {lines}. `mlfbuild convert --repair` corrects the "
        "archive. */\n"
    )
    cast = '#if defined(__GNUC__)\n#pragma GCC diagnostic ignored "-Wcast-function-type"\n#endif\n'  # in the registry
    head = f'{note}{cast}#line 1 "codegen/{file.path}"\n'
    return head.encode() + without_repeated_declarations(text).encode("latin-1") + b"\n"


def _source(module: Module, path: str, renamed: Mapping[str, str], headers: Sequence[str]) -> bytes:
    """Return the beginning of the unit of the source ``path``."""
    owner = owner_name(module.name, renamed)
    names = {**own_names(owner, BUNDLED_HEADER), **renamed} if module.runtime else renamed
    name = PurePosixPath(path).name
    lines = [
        f"{LICENCE}/* {name} as a part of the module {module.name}. Generated by mlfbuild. Do not edit. */",
        *([] if module.runtime else [f"#define MLF_MODULE {owner}"]),
        *(f"#define {name} {other}" for name, other in names.items()),
        *([] if module.runtime else [f'#include "{RUNTIME_NAME}/{header}"' for header in _FIRST]),
        *(f'#include "{header}"' for header in headers),
        _TAKEN_AS_IT_IS,
    ]
    return ("\n".join(lines) + "\n").encode()


def _object(module: str, file: CodegenFile, renamed: Mapping[str, str]) -> bytes:
    names = {**own_names(owner_name(module, renamed), OBJECTS_HEADER), **renamed}
    return renamed_object(file.data, names, f"{module}: codegen/{file.path}")
