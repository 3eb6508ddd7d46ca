"""Compile a model for one CPU to a library.

A compiler maps a request, which names a model file, a CPU and options, to a ``Library``, the content of an archive::

    request = CompileRequest("kws", Path("kws.tflite"), CPUS["cortex-m4"])
    library = compiler_called("native").compile(request)

The four compilers, and what each trusts:

- ``native`` generates C for ``.tflite`` and ``.onnx`` files. It is a separate room, and its output needs no checks.
- ``archive`` reads an archive that another tool exported. The code is compiled already, so it has no options of code
  generation: it can rename the module, use the runtime in the archive, and add the hook between operators.
- ``tvm`` runs ``tvmc`` of an installed TVM, whose arguments differ from release to release (``tvm/tvmc.py``).
- ``command`` runs any program of the project file that writes an archive.

A result of the last three goes through ``accepted`` in ``archive.py``, in this order:

1. the executor of the request must be one that the archive has
2. ``check_placement`` refuses sections for data that the archive's own C code places
3. ``check_fit`` compares the CPU of the request with that of compiled objects, and TVM's scratch memory with what
   CMSIS-NN needs on it (``abi_check``): a linker accepts some of these mistakes, and firmware then fails at run time
4. the library is converted to the current version of the format
5. libraries that the code requires, but the metadata does not list, are added (``library.with_requirements``)

The rules:

- ``check_options`` needs neither the model nor the compiler's own modules: reading a project file calls it for every
  model, and must stay fast. So a compiler imports its modules in ``compile``.
- ``outline`` returns the names of the files that ``compile`` would write, without compiling, so that builds can declare
  their outputs. Compilers that cannot know them compile.
- Options belong to the compiler. An option that it does not have is an error with the key in ``place``: it is never
  ignored.
- Compilers do not write archives, cache results or access the network. ``jobs`` decides when to call them, and stores
  the results.

A new compiler is a class with ``name``, ``check_options``, ``compile`` and ``outline`` (``library.Compiler``) and an
entry in ``COMPILERS``; its archives then work with every command, because those see only the ``Library``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlfbuild.compilers.archive import ARCHIVE
from mlfbuild.compilers.command import COMMAND
from mlfbuild.compilers.tvm.compiler import TVM
from mlfbuild.core import lazy_attributes, unknown
from mlfbuild.library import Compiler as Compiler, ExternalCompiler
from mlfbuild.native import NATIVE

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.compilers.abi_check import check_fit, exported_cpu
    from mlfbuild.compilers.archive import check_placement
    from mlfbuild.compilers.hook_support import HOOK, why_no_hook
else:
    __getattr__ = lazy_attributes(__name__)


EXTERNAL_COMPILERS: Mapping[str, ExternalCompiler] = {"command": COMMAND, "tvm": TVM}
"""Compilers that run another program."""
COMPILERS: Mapping[str, Compiler] = {"archive": ARCHIVE, "native": NATIVE, **EXTERNAL_COMPILERS}
"""Every compiler by its name in the project file; a compiler imports its modules when it compiles."""


def compiler_called(name: str) -> Compiler:
    """Return the compiler ``name``; raises ``UsageError`` if there is none.

    For example, ``compiler_called("native")`` returns the object whose ``compile`` takes a ``CompileRequest``. Names
    come from a project file or from ``--compiler``, and the error has the nearest known one.
    """
    if name not in COMPILERS:
        raise unknown("compiler", name, sorted(COMPILERS)).error("")
    return COMPILERS[name]
