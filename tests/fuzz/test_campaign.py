"""The campaign counts what it should: inputs that crash, hang, escape or are wrong are found and named."""

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from fuzz import campaign
from fuzz.campaign import Counts, Result, Sandbox, results, tried
from fuzz.subjects import SUBJECTS, Subject, subject_of
from mlfbuild.core.errors import InputFileError, UsageError


def work(numbers: Sequence[int], connection: Connection) -> None:
    """Accept even numbers, and end or stop at some others."""
    for number in numbers:
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 7:
            time.sleep(60)
        connection.send((number, "numbers", "accepted", ""))


def test_workers_that_die_or_hang_are_counted_and_replaced() -> None:
    parts = (range(0, 10, 2), range(1, 10, 2))
    found = list(results(work, parts, time.monotonic() + 60, lambda _: "numbers", patience=2))
    outcomes = {number: outcome for number, _, outcome, _ in found}
    assert outcomes == dict.fromkeys(range(10), "accepted") | {5: "crashed", 7: "hung"}
    assert len(found) == 10


def refuses(code: str) -> InputFileError:
    return InputFileError(code, place="a", reason="b")


def fails(error: Exception) -> object:
    raise error


OUTCOMES = {
    "accepted": (lambda _data, _at, _folder: None, "accepted"),
    "refused": (lambda _data, _at, _folder: fails(refuses("x")), "refused 5"),
    "another code": (lambda _data, _at, _folder: fails(UsageError("x", reason="y")), "wrong"),
    "two lines": (lambda _data, _at, _folder: fails(InputFileError("x", reason="a\nb")), "wrong"),
    "a traceback": (lambda _data, _at, _folder: fails(KeyError("x")), "crashed"),
    "left in the folder": (lambda _data, _at, folder: (folder / "x").write_text(""), "escaped"),
    "left beside it": (lambda _data, _at, folder: (folder.parent / "home/x").write_text(""), "escaped"),
    "left where it runs": (lambda _data, _at, _folder: Path("x").write_text(""), "escaped"),
    "reads back as another file": (lambda _data, _at, _folder: fails(AssertionError("another")), "wrong"),
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_outcomes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, expected = OUTCOMES[kind]
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(campaign.tempfile, "tempdir", None)
    subject = Subject(".x", 1, lambda _: b"data", read)
    monkeypatch.setattr(campaign, "SUBJECTS", {"x": subject})
    monkeypatch.setattr(campaign, "subject_of", lambda _: "x")
    root = tmp_path / "root"
    root.mkdir()
    sandbox = Sandbox(root)
    result: Result = tried(1, sandbox)
    assert result[:3] == (1, "x", expected), result
    assert sandbox.left() == []
    counts = Counts(tmp_path / "keep")
    counts.add(result)
    assert counts.defects == (expected in campaign.DEFECTS)
    assert (tmp_path / "keep/x-1.x").exists() == (expected in campaign.DEFECTS)
    assert counts.table().splitlines()[0].split()[:2] == ["tried", "accepted"]


def test_inputs_are_of_every_subject_and_the_same_again() -> None:
    found = Counter(subject_of(number) for number in range(2000))
    assert found.keys() == SUBJECTS.keys()
    for name in ("graph-json", "params", "project", "metadata", "tar", "npz", "lock", "bundle", "report"):
        assert SUBJECTS[name].make(17) == SUBJECTS[name].make(17)
        assert len({SUBJECTS[name].make(number) for number in range(20)}) > 10
