"""Thousands of damaged archives: each is read, or refused quickly with a one-line error, and writes no other files.

The suite tries a few hundred; ``make fuzz`` tries many more, of all kinds of files (``campaign``).
"""

import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from fuzz.made_up import archives_made_up
from fuzz.mutate import Mutator
from fuzz.operations import exercise
from fuzz.seeds import sound_archives
from support.examples import first_on_push
from support.libraries import graph_library

FEW = 80
WORKERS = 2


def fuzz(seed: int, count: int, seconds: float, folder: Path) -> Counter[str]:
    """Try up to ``count`` damaged archives for up to ``seconds``; return how many were read and refused."""
    archives, other, end = sound_archives(), graph_library("other"), time.monotonic() + seconds
    done: Counter[str] = Counter()
    for index in range(count):
        if time.monotonic() > end:
            break
        mutator = Mutator(seed * 1_000_003 + index)
        data = mutator.archive(archives[index % len(archives)])
        try:
            done[exercise(data, other, folder)] += 1
        except BaseException:
            kept = folder.parent / f"seed-{seed}-{index}.tar"
            kept.write_bytes(data)
            print(f"the archive is kept as {kept}")
            raise
    return done


@pytest.mark.parametrize("seed", first_on_push(range(WORKERS)))
def test_damaged_archives_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    done = fuzz(seed, FEW, 120, folder)
    assert done["read"] > FEW // 10 and done["refused"] > FEW // 10, "the damage is neither too great nor too small"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(archives_made_up())
def test_generated_archives_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        exercise(data, graph_library("other"), Path(folder))


@pytest.mark.fuzz
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck), derandomize=False)
@given(archives_made_up())
def test_many_generated_archives_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        exercise(data, graph_library("other"), Path(folder))
