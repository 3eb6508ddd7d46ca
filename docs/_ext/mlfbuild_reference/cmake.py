"""Generate the page on CMake from the functions of the package and of trees, and from their comments."""

from __future__ import annotations

import re
from pathlib import Path

from mlfbuild_reference.markdown import REPOSITORY, fence, page, paragraphs

_FILES = (
    ("The package", "cmake/mlfbuild-config.cmake", 7),
    ("Models as part of the build", "cmake/mlfbuild-models.cmake", 1),
    ("Constants in a file", "mlfbuild/runtime/placement/params_binary.cmake", 1),
    ("Memory regions", "mlfbuild/runtime/placement/placement.cmake", 3),
    ("Boards that QEMU emulates", "mlfbuild/runtime/board/board.cmake", 3),
)
"""Title, file, and how many paragraphs of its first comment are for users; the others are about its code."""
_FUNCTION = re.compile(r"((?:^#.*\n)*)^function\(((?:mlfbuild|mlf)_\w+)(.*?)\)", re.MULTILINE)
_SIGNATURE = re.compile(r"(mlf\w+)\(.*\)\n")
_INTERNAL = {"mlfbuild_check_compiler", "mlfbuild_find_compiler", "mlfbuild_finish_toolchain"}


def cmake_page() -> str:
    """Return the page ``reference/cmake.md``."""
    return page(
        "CMake",
        "the comments in `cmake/` and `mlfbuild/runtime`",
        "[Building with CMake](../cmake.md) explains how these work together, and [CPUs and C "
        "compilers](../toolchains.md#toolchain-files) the toolchain files.",
        *(_section(title, REPOSITORY / path, shown) for title, path, shown in _FILES),
    )


def _section(title: str, path: Path, shown: int) -> str:
    text = path.read_text(encoding="utf-8")
    header = _header(text, path)
    parts = [f"## {title}"]
    if begin := _SIGNATURE.match(header):
        parts += [f"### `{begin[1]}`", fence("cmake", begin[0])]
        header = header[begin.end() :]
    parts.append(paragraphs("\n\n".join(re.split(r"\n(?:[ \t]*\n)+", header.strip())[:shown])))
    for comment, name, parameters in _FUNCTION.findall(text):
        if name in _INTERNAL or (begin and name == begin[1]):
            continue
        words = re.sub(r"^# ?", "", comment, flags=re.MULTILINE)
        if not words.strip():
            raise ValueError(f"{path}: {name} has no comment")
        arguments = " ".join(f"<{word.lower()}>" for word in parameters.split())
        parts += [f"### `{name}`", fence("cmake", f"{name}({arguments})"), paragraphs(words)]
    return "\n\n".join(parts)


def _header(text: str, path: Path) -> str:
    """Return the comment at the beginning of ``text``."""
    if block := re.match(r"#\[\[\n(.*?)\n\]\]", text, re.DOTALL):
        return block[1]
    lines = re.match(r"(?:#.*\n)+", text)
    if lines is None:
        raise ValueError(f"{path}: does not begin with a comment")
    return re.sub(r"^# ?", "", lines[0], flags=re.MULTILINE)
