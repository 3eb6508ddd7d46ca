"""Thousands of damaged archives: each is read, or refused quickly with a one-line error, and writes no other files.

``make fuzz`` tries 100,000, or as many as ten minutes allow; the suite tries a few hundred.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from fuzz.made_up import archives_made_up
from fuzz.mutate import Mutator
from fuzz.operations import exercise
from mlfbuild.archive import archive_files, tar
from support.foreign_archives import linked_archive, operators_archive
from support.libraries import graph_library, native_library
from support.old_archives import model_archive, operator_archive, sketch_archive
from support.sound_archives import tiny_module, with_bundle

FEW = 150
WORKERS = 2
INPUTS = 100_000 // WORKERS
SECONDS = 600
LARGEST_SEED = 120_000  # bytes; larger archives take too much time


def sound_archives(shared: Path) -> list[dict[str, bytes]]:
    """Return the files of valid archives: mlfbuild's, TVM's, and those of versions that no release wrote."""
    own = [archive_files(library) for library in (native_library(), native_library("a", "b"), graph_library())]
    files = [dict(tar.members(path.open("rb"), path.name)) for path in sorted((shared / "archives").glob("*.tar"))]
    old = [model_archive(version, executor) for version in range(1, 7) for executor in ("graph", "aot")]
    old += [operator_archive(version) for version in (4, 5, 6, 7)] + [sketch_archive()]
    old += [linked_archive(), operators_archive(), with_bundle(tiny_module())]
    plain = [{name: bytes(content) for name, content in each.items()} for each in (*own, *files, *old)]
    return [each for each in plain if sum(map(len, each.values())) < LARGEST_SEED]


def fuzz(seed: int, count: int, seconds: float, shared: Path, folder: Path) -> Counter[str]:
    """Try up to ``count`` damaged archives for up to ``seconds``; return how many were read and refused."""
    archives, other, end = sound_archives(shared), graph_library("other"), time.monotonic() + seconds
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


@pytest.mark.parametrize("seed", range(WORKERS))
def test_damaged_archives_are_read_or_refused(seed: int, shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    done = fuzz(seed, FEW, 120, shared, folder)
    assert done["read"] > FEW // 10 and done["refused"] > FEW // 10, "the damage is neither too great nor too small"


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(100, 100 + WORKERS))
def test_many_damaged_archives_are_read_or_refused(seed: int, shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    print(f"{dict(fuzz(seed, INPUTS, SECONDS, shared, folder))}")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(archives_made_up())
def test_generated_archives_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        exercise(data, graph_library("other"), Path(folder))


@pytest.mark.fuzz
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck), derandomize=False)
@given(archives_made_up())
def test_many_generated_archives_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        exercise(data, graph_library("other"), Path(folder))
