"""Compare files byte by byte; differences of text files are counted in lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from mlfbuild.archive.compare.library_difference import LibraryDifference, change
from mlfbuild.c_analysis import MAX_TEXT, TEXT_SUFFIXES
from mlfbuild.library import Content, Library, Module, all_files

_NAMED = re.compile(r".+_lib\d+\.\w+", re.ASCII)
_TEXT_SUFFIXES = (*TEXT_SUFFIXES, ".txt", ".md", ".cmake", ".template", ".json")


def code_differences(left: Module, right: Module) -> Iterator[LibraryDifference]:
    """Yield a difference for each codegen file that is not equal in both modules.

    ``lib<n>.c`` in versions 1 and 2 is the same file as ``<module>_lib<n>.c`` in later versions.
    """
    files = {f"codegen/{file.path}": file.content for file in all_files(left)}
    others = {f"codegen/{file.path}": file.content for file in all_files(right)}
    renamed = {_unnamed(left.name, path): path for path in files if path not in others}
    paired = {
        path if path in files else renamed.get(_unnamed(right.name, path), path): content
        for path, content in others.items()
    }
    yield from file_differences(left.name, "code", files, paired)


def _unnamed(module: str, path: str) -> str:
    """Return the path of a module's file without the module's name."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + (name.removeprefix(f"{module}_") if _NAMED.fullmatch(name) else name)


def other_differences(left: Library, right: Library, ignored: str) -> Iterator[LibraryDifference]:
    """Yield a difference for each file of no module that is not equal in both, except the file ``ignored``."""
    sides = ({str(file.path): file.content for file in side.other_files} for side in (left, right))
    yield from file_differences(None, "file", *({p: c for p, c in side.items() if p != ignored} for side in sides))


def file_differences(
    module: str | None, what: str, left: Mapping[str, Content], right: Mapping[str, Content]
) -> Iterator[LibraryDifference]:
    """Yield a difference for each path with different content on the two sides."""
    for path in sorted({*left, *right}):
        if path not in right:
            yield LibraryDifference(module, what, path, {"size": len(left[path])}, None, "only in the first")
        elif path not in left:
            yield LibraryDifference(module, what, path, None, {"size": len(right[path])}, "only in the second")
        elif left[path] != right[path]:
            yield _content_difference(module, what, path, left[path], right[path])


def _content_difference(module: str | None, what: str, path: str, left: Content, right: Content) -> LibraryDifference:
    if not path.endswith(_TEXT_SUFFIXES) or max(len(left), len(right)) > MAX_TEXT:
        text = f"{change(len(left), len(right))} bytes" if len(left) != len(right) else f"different {len(left):,} bytes"
        return LibraryDifference(module, what, path, {"size": len(left)}, {"size": len(right)}, text)
    first, second = (Counter(bytes(side).splitlines()) for side in (left, right))
    gone, new = (first - second).total(), (second - first).total()
    lines = f"{gone:,} removed, {new:,} added" if gone or new else "in another order, or with other line ends"
    text = f"{change(first.total(), second.total())} lines: {lines}"
    facts = [{"size": len(side), "lines": lines.total()} for side, lines in ((left, first), (right, second))]
    return LibraryDifference(module, what, path, facts[0], facts[1], text)
