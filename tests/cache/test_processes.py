"""Many processes store, read and remove in one folder, and are killed."""

import json
import random
import subprocess
import sys
from pathlib import Path

from cache.conftest import KEY, OUTPUTS
from mlfbuild.cache import CacheSettings, cache_content, open_cache, verify_cache
from mlfbuild.core import sha256

WORKER = """\
import json, random, sys
from pathlib import Path
from mlfbuild.cache import CacheSettings, open_cache
from mlfbuild.core import sha256

folder, seed, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
notices, wrong, hits = [], 0, 0
cache = open_cache(CacheSettings(folder, limit), notices.append)
draw = random.Random(seed)
for _ in range(150):
    number = draw.randrange(60)
    key = sha256(b"key %d" % number)
    # The same outputs in every process, and some blobs in several results.
    outputs = {"a": random.Random(number).randbytes(9_000), "b": b"%d" % (number % 5) * 500}
    found = cache.fetch(key)
    if found is None:
        cache.store(key, outputs)
    else:
        hits += 1
        wrong += found.outputs != outputs
print(json.dumps([notices, wrong, hits]))
"""


def start(root: Path, seed: int, limit: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WORKER, str(root), str(seed), str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_a_folder_that_is_too_small_for_them(tmp_path: Path) -> None:
    root, limit = tmp_path / "results", 300_000  # of 540,000
    running = [start(root, seed, limit) for seed in range(3)]
    ends = [json.loads(process.communicate()[0]) for process in running]
    assert [(notices, wrong) for notices, wrong, _ in ends] == [([], 0)] * 3
    assert all(hits for *_, hits in ends)
    content = cache_content(root)
    # Each may be writing one result when another one measures.
    assert limit // 2 < content.bytes <= limit + 3 * 12_000
    assert verify_cache(root).damaged == ()
    assert not list(root.rglob("*.tmp"))


def test_a_killed_process_leaves_nothing_that_is_wrong(tmp_path: Path) -> None:
    root, limit = tmp_path / "results", 300_000
    draw = random.Random(1)
    for seed in range(3):
        process = start(root, seed, limit)
        try:
            process.wait(0.15 + draw.random() / 4)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
    assert verify_cache(root).damaged == ()
    # The lock of a killed process is gone with it.
    notices, wrong, hits = json.loads(start(root, 9, limit).communicate()[0])
    assert (notices, wrong) == ([], 0)
    assert hits


def test_clearing_meanwhile_fails_nobody(tmp_path: Path) -> None:
    from mlfbuild.cache import clear_cache

    root = tmp_path / "results"
    process = start(root, 1, 1 << 30)
    removed = 0
    while process.poll() is None:
        removed += clear_cache(root).blobs
    notices, wrong, _ = json.loads(process.communicate()[0])
    assert (notices, wrong) == ([], 0)
    assert removed


def test_a_blob_that_is_removed_between_stores_is_written_again(tmp_path: Path) -> None:
    root = tmp_path / "results"
    cache = open_cache(CacheSettings(root), print)
    cache.store(KEY, OUTPUTS)
    digest = sha256(b"{}")
    (root / "cas" / digest[:2] / digest).unlink()
    cache.store(KEY, OUTPUTS)
    assert cache.fetch(KEY) is not None
