"""Each file in ``invalid`` has one kind of mistake; its first comment lines are the codes and places to report."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.project import load_project
from mlfbuild.targets import CPUS

INVALID = sorted((Path(__file__).parent / "invalid").glob("*.yml"))


def expected(path: Path) -> list[str]:
    lines = path.read_bytes().split(b"\n")
    count = next(index for index, line in enumerate(lines) if not line.startswith(b"# "))
    return [line.removeprefix(b"# ").decode().replace("<cpus>", ", ".join(CPUS)) for line in lines[:count]]


def problems(path: Path) -> list[Diagnostic]:
    with pytest.raises(ProjectFileError) as caught:
        load_project(path)
    assert caught.value.exit_code == 2
    assert all(isinstance(problem, Diagnostic) for problem in caught.value.problems)
    return list(caught.value.problems)


def place(problem: Diagnostic, path: Path) -> str:
    return problem.place.removeprefix(f"{path}:")


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_all_mistakes_are_reported_with_their_place(path: Path) -> None:
    assert [f"{place(problem, path)} [{problem.code}]" for problem in problems(path)] == expected(path)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_messages_are_one_printable_line_in_file_order(path: Path) -> None:
    found = problems(path)
    assert found
    assert all(str(problem).isprintable() for problem in found)
    positions = [tuple(int(number) for number in place(problem, path).split(":")[:2]) for problem in found]
    assert positions == sorted(positions)


def test_messages(golden: Callable[[str, str], None]) -> None:
    lines = []
    for path in INVALID:
        lines += [path.name, *(f"    {str(problem).removeprefix(f'{path}:')}" for problem in problems(path))]
    golden("\n".join(lines) + "\n", "messages.txt")
