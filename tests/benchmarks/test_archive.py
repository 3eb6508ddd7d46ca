"""Commands take as many steps for an archive as its content grows: twice the modules or operators, twice the calls.

``benchmarks/archive.py`` measures the same libraries with thousands of modules, in CPU time.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from archive_kinds import GROWING, other

from archive import COMMANDS as MEASURED, EXPONENT_LIMIT, INSPECT_LIMIT, MODULES, RESULTS, TIME_LIMIT
from mlfbuild import open_archive, write_archive
from mlfbuild.usecases import archive_text, compare_archives, inspect_archive, merge_archives, validate_archive
from support.examples import first_on_push
from support.steps import calls

COUNTS = (4, 8, 16)
COMMANDS: dict[str, Callable[[Path], object]] = {
    "open": open_archive,
    "inspect": inspect_archive,
    "inspect -v": lambda path: archive_text(path, verbose=True),
    "validate": validate_archive,
    "compare": lambda path: compare_archives(path, path),
    "convert": lambda path: write_archive(open_archive(path), path.with_name("copy.tar")),
    "merge": lambda path: merge_archives([path, path.with_name("other.tar")], path.with_name("merged.tar")),
}


@pytest.mark.parametrize("grows", first_on_push(GROWING))
def test_steps_grow_with_the_content(tmp_path: Path, grows: str) -> None:
    write_archive(other(), tmp_path / "other.tar")
    paths = [tmp_path / f"{count}.tar" for count in COUNTS]
    for count, path in zip(COUNTS, paths, strict=True):
        write_archive(GROWING[grows](count), path)
    for name, work in COMMANDS.items():
        work(paths[0])  # imports
        few, some, many = (calls(partial(work, path)) for path in paths)
        assert many - some <= 2.2 * (some - few), (name, few, some, many)


def test_committed_figures_are_within_their_limits() -> None:
    rows = json.loads(RESULTS.read_text())
    assert {(row["grows"], row["command"]) for row in rows} == {(grows, name) for grows in GROWING for name in MEASURED}
    assert max(row["exponent"] or 0 for row in rows) < EXPONENT_LIMIT
    inspected = [row for row in rows if row["command"] == "inspect" and row["grows"].endswith("modules")]
    for row in inspected:
        assert row["cpu_seconds"][str(MODULES)] < TIME_LIMIT
        assert row["mebibytes"][str(MODULES)] < INSPECT_LIMIT
