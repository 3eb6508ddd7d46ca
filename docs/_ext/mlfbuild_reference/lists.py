"""Lists in hand-written pages that follow from tables in the code, or from results of tests: CPUs, boards, operators.

``LISTS`` has a function a page, which returns the page with its lists as the code has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mlfbuild.native.frontends.tflite.operators import CUSTOM, SHAPES, SUPPORTED, operator_name
from mlfbuild.native.graph import EVERY, DType
from mlfbuild.native.graph.ops import operator_class
from mlfbuild.report.fleet import COLUMNS, PLACE
from mlfbuild.targets import BOARDS, CPUS, Board, Cpu
from mlfbuild_reference.cmake import cmake_reference
from mlfbuild_reference.markdown import code
from mlfbuild_reference.scons import scons_reference

_FEATURES = Path(__file__).parents[3] / "tests/golden/archive/test_features"
_EVERYTHING = "read, run, convert, write"
_MADE = "<!-- The rest is generated from the docstrings in mlfbuild/scons by `make generate`. -->"
_MADE_OF_CMAKE = "<!-- The rest is generated from the comments in cmake/ and mlfbuild/runtime by `make generate`. -->"
_CODES = {operator_name(number): number for number in SUPPORTED}


def with_operators(page: str) -> str:
    """Return ``docs/operators.md`` with every operator that TFLite files may have, by its types."""
    named = [(name, _types_of(name)) for name in (*CUSTOM, *map(operator_name, SUPPORTED))]
    groups: dict[str, list[str]] = {}
    for name, types in sorted(named, key=lambda pair: pair[0].upper()):
        groups.setdefault(types, []).append(code(name))
    rows = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return _with_table(page, "types", [f"| {types} | {', '.join(names)} |" for types, names in rows])


def _types_of(name: str) -> str:
    """Return the types of the first input, and those of the results if they differ."""
    operator = operator_class(name)
    if operator is not None:
        return _between(operator.types, operator.results)
    kind = SHAPES.get(_CODES[name])
    if kind is None:  # of variables
        return "all"
    if kind.values > 1 or len(kind.types) == len(EVERY):  # of the type of what it reads
        return _between(kind.types)
    return _between(EVERY, kind.types)


def _between(types: Sequence[DType], results: Sequence[DType] = ()) -> str:
    return f"{_types(types)} -> {_types(results)}" if results else _types(types)


def _types(types: Sequence[DType]) -> str:
    return "all" if set(types) == set(EVERY) else ", ".join(dtype.value for dtype in types)


def with_cpus(page: str) -> str:
    """Return ``docs/toolchains.md`` with the row of every CPU."""
    return _with_rows(
        page, f"`(?:{'|'.join(map(re.escape, CPUS))}|cortex-[^`]*)`", [_cpu_row(cpu) for cpu in CPUS.values()]
    )


def _cpu_row(cpu: Cpu) -> str:
    boards = [code(board.name) for board in BOARDS.values() if board.takes(cpu)]
    columns = [
        code(cpu.name),
        cpu.title,
        cpu.float_abi,
        ", ".join(sorted(cpu.features)),
        ", ".join(cpu.compilers) or "the machine's own",
        ", ".join(boards),
    ]
    return f"| {' | '.join(text or '-' for text in columns)} |"


def with_boards(page: str) -> str:
    """Return ``docs/verify.md`` with the row of every board."""
    return _with_rows(page, f"`(?:{'|'.join(BOARDS)})`", [_board_row(board) for board in BOARDS.values()])


def _board_row(board: Board) -> str:
    cores = [_core(board.cpu), ", ".join(map(_core, board.runs)) or "-"]
    sizes = (f"{region.size // 1024 // 1024} MiB" for region in (board.flash, board.ram))
    return f"| {' | '.join([code(board.name), *cores, *sizes])} |"


def _core(cpu: str) -> str:
    return cpu.removeprefix("cortex-").upper().replace("PLUS", "+")


def with_scons_reference(page: str) -> str:
    """Return ``docs/scons.md`` with the methods, builders and variables of the tool at its end."""
    return _with_end(page, _MADE, scons_reference())


def with_cmake_reference(page: str) -> str:
    """Return ``docs/cmake.md`` with the functions of the package and of trees at its end."""
    return _with_end(page, _MADE_OF_CMAKE, cmake_reference())


def _with_end(page: str, mark: str, end: str) -> str:
    before, found, _ = page.partition(mark)
    if not found:
        raise ValueError(f"no line {mark}")
    return f"{before}{mark}\n\n{end}\n"


def with_archive_features(page: str) -> str:
    """Return ``docs/archive.md`` with the table of features, which tests/archive/test_features.py has the facts for."""
    groups: dict[tuple[str, str], list[str]] = {}
    for title, versions, works in sorted(row for path in _FEATURES.glob("*/*") for row in _feature_rows(path)):
        groups.setdefault((versions, works), []).append(title)
    rows = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return _with_table(
        page, "versions", [f"| {versions} | {works} | {'; '.join(titles)} |" for (versions, works), titles in rows]
    )


def _feature_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield title, versions and what works from a golden file: a title, then lines such as ``5: read, convert``."""
    title, *lines = path.read_text(encoding="utf-8").splitlines()
    versions: dict[str, list[str]] = {}
    for version, _, works in (line.partition(": ") for line in lines):
        if works != "-":
            versions.setdefault("all" if works == _EVERYTHING else works, []).append(version)
    for works, which in versions.items():
        yield title, " to ".join(dict.fromkeys((which[0], which[-1]))), works


def with_fleet_columns(page: str) -> str:
    """Return ``docs/report.md`` with the columns of the overview."""
    columns = [*PLACE.items(), *((column.name, column.about) for column in COLUMNS)]
    rows: dict[str, list[str]] = {}
    for name, about in columns:
        last = about or next(reversed(rows))
        rows.setdefault(last, []).append(code(name))
    return _with_table(page, "column", [f"| {', '.join(names)} | {about} |" for about, names in rows.items()])


def _with_rows(page: str, key: str, rows: Sequence[str]) -> str:
    """Return ``page`` with ``rows`` for those lines of its first table whose first cell is a ``key``."""
    found = re.search(rf"(?:^\| {key} \|.*\n)+", page, re.MULTILINE)
    if found is None:
        raise ValueError(f"no row begins with {key}")
    return page[: found.start()] + "".join(f"{row}\n" for row in rows) + page[found.end() :]


def _with_table(page: str, head: str, rows: Sequence[str]) -> str:
    """Return ``page`` with ``rows`` in the table whose first column is called ``head``."""
    table = re.compile(rf"(?<=^\| {head} \|)(.*\n.*\n)(?:\|.*\n)*", re.MULTILINE)
    if not table.search(page):
        raise ValueError(f"no table of {head}")
    return table.sub(lambda found: found[1] + "".join(f"{row}\n" for row in rows), page, count=1)


LISTS: Mapping[str, Callable[[str], str]] = {
    "operators.md": with_operators,
    "toolchains.md": with_cpus,
    "verify.md": with_boards,
    "archive.md": with_archive_features,
    "scons.md": with_scons_reference,
    "cmake.md": with_cmake_reference,
    "report.md": with_fleet_columns,
}
"""By the page's name in ``docs``."""
