"""Lay out the printed texts of a module as files of an archive: in folders, or as one C file and its header.

With ``layout: single-file``, the C file includes no other file of the archive, because some tools copy only the ``.c``
files, or do not add the archive's include folder to the include path. The text of each header takes the place of the
first directive that includes it, after the headers that it includes itself; other such directives are dropped. The
headers keep their guards, so the public header may be included before the C file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mlfbuild.library import KERNEL_FOLDER, CodegenFile, spooled
from mlfbuild.native.kernels import kernel_files, kernel_headers
from mlfbuild.native.printing.file_plan import source_path

_INCLUDE = re.compile(r'^#include "([^"\n]+)"\n', re.MULTILINE)
_CLANG = """\
/* Unlike GCC, clang reports inline functions of a C file that are not called. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-function"
#endif

"""


def codegen_files(
    name: str, sources: Sequence[Iterable[str]], header: CodegenFile, kernels: tuple[str, ...], *, single: bool
) -> tuple[CodegenFile, ...]:
    """Return the files of the module ``name``: its sources, its header and kernels, or one C file and the header.

    ``sources`` are the texts of ``<name>_lib0.c``, ``<name>_lib1.c`` and so on in pieces; each may call functions of
    those after it. ``kernels`` are the kernel headers that they include.

    If ``single`` is true, the C file contains the headers, and no kernel headers are among the files.
    """
    if single:
        content = spooled(piece.encode() for piece in _joined(sources, header))
        return (CodegenFile(source_path(name), content), header)
    texts = (spooled(piece.encode() for piece in source) for source in sources)
    files = (CodegenFile(source_path(name, number), text) for number, text in enumerate(texts))
    return (*files, header, *kernel_files(kernels))


def _joined(sources: Sequence[Iterable[str]], header: CodegenFile) -> Iterator[str]:
    """Yield the sources, the last one first, with the text of the headers that they include."""
    # Each header is included once, where it is first needed; its guard stays for the public header.
    headers = {name: content.decode() for name, content in kernel_headers().items()}
    headers["compiler.h"] = f"{_CLANG}{headers['compiler.h']}"  # every other kernel includes it
    headers[header.path.name] = header.data.decode()
    # Functions are then defined before they are called, which needs no declarations.
    for number, source in enumerate(reversed(sources)):
        yield "\n" if number else ""
        yield from (_with_headers(piece, headers) if "#include" in piece else piece for piece in source)


def _with_headers(text: str, headers: dict[str, str]) -> str:
    """Return ``text`` with those of ``headers`` that it includes, and remove them from ``headers``: they are known."""
    return _INCLUDE.sub(lambda found: _header(found[1].removeprefix(f"{KERNEL_FOLDER}/"), headers), text)


def _header(name: str, headers: dict[str, str]) -> str:
    if name not in headers:
        return ""
    text = headers.pop(name)
    included = "".join(_header(found[1], headers) for found in _INCLUDE.finditer(text))
    # Headers that this one includes come first, so that its types are known.
    return f"{included}{_INCLUDE.sub('', text)}"
