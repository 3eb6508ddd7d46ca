"""The kernel headers in archives of the native compiler: where they are, and which of them code includes.

Generated C includes ``"mlfbuild/conv2d.h"``, and the folder ``mlfbuild`` is next to the source, so that compilers find
it there first, before any include path. ``merge`` renames it to ``mlfbuild_<module>`` if the kernels of two modules
differ. Older archives have all kernels in ``include/mlfbuild-<hash>``, which is never renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from mlfbuild.c_analysis import MAX_TEXT, SOURCE_SUFFIXES, RepeatedDeclaration, repeated_declarations
from mlfbuild.core import listed
from mlfbuild.library.value import CodegenFile, Module


def repeated_in(file: CodegenFile) -> tuple[RepeatedDeclaration, ...]:
    """Return the contradicting declarations of ``file``; none if it is not a source, or too large to be searched.

    For example, a function with two prototypes that differ in the type of a parameter. Reads the content, which may
    still be in the archive.
    """
    if file.path.suffix not in SOURCE_SUFFIXES or len(file.content) > MAX_TEXT:
        return ()
    # The text is only searched and never written back, so any encoding is accepted.
    return repeated_declarations(file.data.decode("latin-1"))


def corrected_files(module: Module) -> Iterator[tuple[CodegenFile, tuple[RepeatedDeclaration, ...]]]:
    """Yield each source of ``module`` of which a corrected copy is compiled, with its contradicting declarations.

    A file is corrected in a copy that builds compile; the archive keeps what TVM wrote. Modules that need no unit
    (``module.complete``) and graphs have none.
    """
    for file in module.codegen if module.executor == "aot" and not module.complete else ():
        repeated = repeated_in(file)
        if repeated:
            yield file, repeated


def corrected_sources(module: Module) -> tuple[str, ...]:
    """Return a sentence for users about each source of ``module`` of which a corrected copy is compiled."""
    return tuple(
        f"{file.path.name}: TVM declares {listed([each.name for each in repeated])} twice with different types; a "
        "corrected copy is compiled, and `mlfbuild convert --repair` corrects the archive"
        for file, repeated in corrected_files(module)
    )


KERNEL_FOLDER = "mlfbuild"
"""The folder next to the sources."""
_HEADER = re.compile(r"(\w+)/(src/mlfbuild(?:_\w+)?|include/mlfbuild-[0-9a-f]{12})/\w+\.h", re.ASCII)
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def is_kernel_header(path: PurePosixPath | str) -> bool:
    """Return whether ``path``, relative to ``codegen/``, is a kernel header.

    Folders of merged archives (``mlfbuild_<module>``) and the public folder of older archives also count.
    """
    return _HEADER.fullmatch(str(path)) is not None


def kernel_include_dirs(paths: Iterable[PurePosixPath | str]) -> list[str]:
    """Return the folders of the kernel folders among ``paths``, for the private include path; relative to ``codegen/``.

    Those of older archives are in the public include folder and are not listed.
    """
    found = (_HEADER.fullmatch(str(path)) for path in paths)
    # Folders in `include/` are public, so compilers find them without a private path.
    return sorted({f"{each[1]}/src" for each in found if each is not None and each[2].startswith("src/")})


def included_names(text: bytes) -> Iterator[str]:
    """Yield each name that ``text``, C code, includes, regardless of conditions around the directive.

    Both forms of the directive count. Names are as they are written, with their folders, and may be repeated.
    """
    yield from (name.decode(errors="replace") for name in _INCLUDE.findall(text))


def reached_headers(names: Iterable[str], headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return those of ``headers`` (name -> text) that are in ``names`` or included by another one, sorted by name.

    Conditions of the preprocessor are not evaluated: code for one CPU keeps the portable code that other machines use.
    """
    waiting = [name for name in names if name in headers]
    # A set of names that were seen ends the search even if headers include each other.
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [other for other in included_names(headers[name]) if other in headers]
    return {name: headers[name] for name in sorted(found)}
