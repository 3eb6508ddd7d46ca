"""Generate the functions of CMake's package and of trees, at the end of ``docs/cmake.md``, from their comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mlfbuild_reference.markdown import REPOSITORY, fence, paragraphs

_FILES = (
    "cmake/mlfbuild-models.cmake",
    "cmake/mlfbuild-config.cmake",
    "mlfbuild/runtime/placement/params_binary.cmake",
)
_FUNCTION = re.compile(r"((?:^#.*\n)*)^function\(((?:mlfbuild|mlf)_\w+)(.*?)\)", re.MULTILINE)
_SIGNATURE = re.compile(r"(mlf\w+)\(.*\)\n")
_INTERNAL = {"mlfbuild_check_compiler", "mlfbuild_find_compiler", "mlfbuild_finish_toolchain"}


def cmake_reference() -> str:
    """Return a heading, a signature and the comment of each public function."""
    return "\n\n".join(["## Functions", *(part for path in _FILES for part in _functions(REPOSITORY / path))])


def _functions(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    header = _header(text, path)
    if begin := _SIGNATURE.match(header):
        about = re.split(r"\n(?:[ \t]*\n)+", header[begin.end() :].strip())[0]
        yield from (f"### `{begin[1]}`", fence("cmake", begin[0]), paragraphs(about))
    for comment, name, parameters in _FUNCTION.findall(text):
        if name in _INTERNAL or (begin and name == begin[1]):
            continue
        words = re.sub(r"^# ?", "", comment, flags=re.MULTILINE)
        if not words.strip():
            raise ValueError(f"{path}: {name} has no comment")
        arguments = " ".join(f"<{word.lower()}>" for word in parameters.split())
        yield from (f"### `{name}`", fence("cmake", f"{name}({arguments})"), paragraphs(words))


def _header(text: str, path: Path) -> str:
    """Return the comment at the beginning of ``text``."""
    if block := re.match(r"#\[\[\n(.*?)\n\]\]", text, re.DOTALL):
        return block[1]
    lines = re.match(r"(?:#.*\n)+", text)
    if lines is None:
        raise ValueError(f"{path}: does not begin with a comment")
    return re.sub(r"^# ?", "", lines[0], flags=re.MULTILINE)
