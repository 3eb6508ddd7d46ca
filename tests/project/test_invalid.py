"""Each file in ``invalid`` makes one kind of mistake; its first comment lines are the messages it must get."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlfbuild.core.errors import ProjectFileError
from mlfbuild.project import load_project
from mlfbuild.targets import CPUS

INVALID = sorted((Path(__file__).parent / "invalid").glob("*.yml"))


def expected_messages(path: Path) -> list[str]:
    lines = path.read_bytes().split(b"\n")
    count = next(index for index, line in enumerate(lines) if not line.startswith(b"# "))
    return [line.removeprefix(b"# ").decode().replace("<cpus>", ", ".join(CPUS)) for line in lines[:count]]


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_mistakes_are_all_reported_with_their_place(path: Path) -> None:
    with pytest.raises(ProjectFileError) as caught:
        load_project(path)
    got = [problem.removeprefix(f"{path}:") for problem in caught.value.problems]
    assert got == expected_messages(path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_messages_are_one_printable_line_in_file_order(path: Path) -> None:
    messages = expected_messages(path)
    assert messages
    assert all(message.isprintable() for message in messages)
    places = [tuple(int(number) for number in message.split(":")[:2]) for message in messages]
    assert places == sorted(places)
