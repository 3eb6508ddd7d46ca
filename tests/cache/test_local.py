"""The local cache returns what was stored, stays below its limit, and never fails."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cache.conftest import KEY, OUTPUTS
from mlfbuild.cache import CacheSettings, cache_content, open_cache, results_folder, verify_cache
from mlfbuild.cache.action_result import ActionResult
from mlfbuild.cache.local import LocalCache
from mlfbuild.core import UsageError, sha256

HOUR = 3600


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "results"


def fails(text: str) -> None:
    raise AssertionError(text)


def kept(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - {".added", ".hits"}


def age(root: Path, seconds: float) -> None:
    for path in (root / name for name in kept(root)):
        time_then = path.stat().st_mtime - seconds
        os.utime(path, (time_then, time_then))


def test_outputs_come_back(root: Path) -> None:
    cache = open_cache(CacheSettings(root), fails)
    assert cache.fetch(KEY) is None
    cache.store(KEY, OUTPUTS, worker="ci-3", seconds=2.25)
    found = open_cache(CacheSettings(root), fails).fetch(KEY)
    assert found is not None
    assert (dict(found.outputs), found.where, found.worker, found.seconds) == (OUTPUTS, "local", "ci-3", 2.25)
    assert cache.fetch(sha256(b"another action")) is None


def test_the_layout_is_that_of_bazels_disk_cache(root: Path) -> None:
    """``ac`` and ``cas``, then two digits, then the digest (DiskCacheClient.toPath); no file for the empty blob."""
    open_cache(CacheSettings(root), fails).store(KEY, OUTPUTS)
    blobs = [sha256(content) for content in OUTPUTS.values() if content]
    assert kept(root) == {f"ac/{KEY[:2]}/{KEY}", *(f"cas/{digest[:2]}/{digest}" for digest in blobs)}
    result = ActionResult.from_bytes((root / "ac" / KEY[:2] / KEY).read_bytes())
    assert [(file.path, file.sha256, file.size) for file in result.outputs] == [
        (path, sha256(content), len(content)) for path, content in OUTPUTS.items()
    ]


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", KEY.upper(), KEY[:-1]])
def test_other_texts_are_no_digests(root: Path, digest: str) -> None:
    cache = open_cache(CacheSettings(root), fails)
    for call in (cache.fetch, lambda key: cache.store(key, {})):
        with pytest.raises(ValueError, match="64"):
            call(digest)


def test_the_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert results_folder() == tmp_path / "xdg/mlfbuild/results"
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "chosen"))
    open_cache(CacheSettings(), fails).store(KEY, OUTPUTS)
    assert kept(tmp_path / "chosen/results")


def test_a_limit_of_0_keeps_nothing(root: Path) -> None:
    cache = open_cache(CacheSettings(root, limit=0), fails)
    cache.store(KEY, OUTPUTS)
    assert (cache.fetch(KEY), root.exists()) == (None, False)


@pytest.mark.parametrize("damage", [b"", b"other content", b"x" * 7000])
def test_a_damaged_blob_is_a_miss_and_removed(root: Path, damage: bytes) -> None:
    cache = open_cache(CacheSettings(root), fails)
    cache.store(KEY, OUTPUTS)
    digest = sha256(OUTPUTS["kws.tar"])
    (root / "cas" / digest[:2] / digest).write_bytes(damage)
    assert cache.fetch(KEY) is None
    assert kept(root) == {f"cas/{other[:2]}/{other}" for other in [sha256(b"{}")]}
    cache.store(KEY, OUTPUTS)
    assert cache.fetch(KEY) is not None


def test_a_damaged_result_is_a_miss_and_removed(root: Path) -> None:
    cache = open_cache(CacheSettings(root), fails)
    cache.store(KEY, OUTPUTS)
    (root / "ac" / KEY[:2] / KEY).write_bytes(b"\xff")
    assert cache.fetch(KEY) is None
    assert not (root / "ac" / KEY[:2] / KEY).exists()


def test_a_result_without_a_blob_is_a_miss_and_removed(root: Path) -> None:
    cache = open_cache(CacheSettings(root), fails)
    cache.store(KEY, OUTPUTS)
    (root / "cas" / sha256(b"{}")[:2] / sha256(b"{}")).unlink()
    assert cache.fetch(KEY) is None
    assert not (root / "ac" / KEY[:2] / KEY).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_result_of_another_user_is_not_used(root: Path) -> None:
    """Its blobs are: their digests say what they are."""
    cache = open_cache(CacheSettings(root), fails)
    cache.store(KEY, OUTPUTS)
    os.chown(root / "ac" / KEY[:2] / KEY, 65534, 65534)
    assert cache.fetch(KEY) is None
    os.chown(root / "ac" / KEY[:2] / KEY, 0, 0)
    digest = sha256(b"{}")
    os.chown(root / "cas" / digest[:2] / digest, 65534, 65534)
    assert cache.fetch(KEY) is not None


def test_a_pipe_in_place_of_an_entry_does_not_block(root: Path) -> None:
    path = root / "ac" / KEY[:2] / KEY
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert open_cache(CacheSettings(root), fails).fetch(KEY) is None


def test_reading_renews_the_result_and_its_blobs_once_an_hour(root: Path) -> None:
    cache = open_cache(CacheSettings(root), fails)
    cache.store(KEY, OUTPUTS)
    other = sha256(b"not read")
    LocalCache(root, 1 << 20, fails).put_blob(other, b"not read")
    age(root, 2 * HOUR)
    before = {name: (root / name).stat().st_mtime_ns for name in kept(root)}
    assert cache.fetch(KEY) is not None
    renewed = {name: (root / name).stat().st_mtime_ns for name in kept(root)}
    assert {name for name in before if renewed[name] != before[name]} == kept(root) - {f"cas/{other[:2]}/{other}"}
    result = renewed[f"ac/{KEY[:2]}/{KEY}"]
    assert all(renewed[name] >= result for name in before if other not in name)
    age(root, HOUR / 2)
    before = {name: (root / name).stat().st_mtime_ns for name in kept(root)}
    assert cache.fetch(KEY) is not None
    assert {name: (root / name).stat().st_mtime_ns for name in kept(root)} == before


def test_the_least_recently_used_entries_are_removed(root: Path) -> None:
    """Whole results: at no time does a result lack a blob, which ``verify_cache`` would find."""
    limit = 160 << 10
    cache = open_cache(CacheSettings(root, limit), fails)
    used = sha256(b"used")
    cache.store(used, {"a": b"used" * 1000, "b": b"also used" * 1000})
    keys = [sha256(bytes([number])) for number in range(36)]
    for number, key in enumerate(keys):
        age(root, HOUR)
        assert cache.fetch(used) is not None
        cache.store(key, {"a": os.urandom(12_000), "b": b"shared", "c": bytes([number % 3]) * 1000})
        content = cache_content(root)
        assert content.bytes <= limit
    assert content.bytes > limit // 2
    assert verify_cache(root).incomplete == ()
    there = [key for key in keys if (root / "ac" / key[:2] / key).exists()]
    assert there == keys[-len(there) :]
    assert 0 < len(there) < len(keys)


def test_the_folder_is_measured_after_an_eighth_of_the_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each store: that would read the names of all entries for each."""
    from mlfbuild.cache import local

    calls = []
    monkeypatch.setattr(
        local, "prune", lambda *arguments: calls.append(arguments) or (root / ".added").write_bytes(b"")
    )
    for number in range(100):  # processes, each of which stores little
        LocalCache(root, 8 << 20, fails).put_blob(sha256(bytes([number])), bytes([number]) * (80 << 10))
    assert len(calls) == 100 // 13  # 84 KiB are counted for each, and 13 of them are more than 1 MiB


def test_outputs_of_half_the_limit_are_not_kept(root: Path) -> None:
    notices: list[str] = []
    cache = open_cache(CacheSettings(root, 10_000), notices.append)
    cache.store(KEY, {"a": bytes(6000)})
    assert (cache.fetch(KEY), len(notices), kept(root)) == (None, 1, set())


def test_what_a_killed_process_left_is_removed(root: Path) -> None:
    cache = LocalCache(root, 1 << 20, fails)
    cache.put_blob(KEY, b"a tensor")
    folder = next((root / "cas").iterdir())
    name = folder.name + KEY[2:]
    left, running = folder / f".{name}.0123456789ab.tmp", folder / f".{name}.ba9876543210.tmp"
    left.touch()
    running.touch()
    old = time.time() - 2 * HOUR
    os.utime(left, (old, old))
    cache.put_blob(sha256(b"another"), os.urandom(300_000))
    assert (left.exists(), running.exists()) == (False, True)


def test_a_folder_that_cannot_be_written_is_read_and_reported_once(root: Path) -> None:
    open_cache(CacheSettings(root), fails).store(KEY, OUTPUTS)
    (root / ".added").unlink()
    (root / ".added").mkdir()  # as root may write to any folder
    notices: list[str] = []
    cache = open_cache(CacheSettings(root), notices.append)
    for number in range(3):
        cache.store(sha256(bytes([number])), OUTPUTS)
    assert cache.fetch(KEY) is not None
    (notice,) = notices
    assert notice.startswith(f"cache: {root}: cannot write: ")


def test_a_file_in_place_of_the_folder_is_reported_once(root: Path) -> None:
    root.write_text("a file")
    notices: list[str] = []
    cache = open_cache(CacheSettings(root), notices.append)
    for number in range(3):
        cache.store(sha256(bytes([number])), OUTPUTS)
        assert cache.fetch(KEY) is None
    assert len(notices) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("only root can mount a small disk; the test below limits files instead")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_reported_once(small_disk: Path) -> None:
    notices: list[str] = []
    cache = open_cache(CacheSettings(small_disk / "results"), notices.append)
    keys = [sha256(bytes([number])) for number in range(20)]
    for key in keys:
        cache.store(key, {"a": os.urandom(100_000), "b": b"b"})
    there = [key for key in keys if cache.fetch(key)]
    assert 5 < len(there) < 12
    assert [notice.partition(": results of")[0].partition("; ")[0] for notice in notices] == [
        f"cache: {small_disk / 'results'}: cannot write: No space left on device"
    ]
    assert not list(small_disk.rglob("*.tmp"))
    assert verify_cache(small_disk / "results").damaged == ()


def test_files_that_cannot_grow_are_reported_once(root: Path) -> None:
    notices: list[str] = []
    cache = open_cache(CacheSettings(root), notices.append)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        for number in range(3):
            cache.store(sha256(bytes([number])), {"a": os.urandom(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(notices) == 1
    assert "File too large" in notices[0]
    assert kept(root) == set()


def test_a_user_without_a_home_has_no_local_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home(*_: object) -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "expanduser", no_home)
    notices: list[str] = []
    cache = open_cache(CacheSettings(), notices.append)
    cache.store(KEY, OUTPUTS)
    assert (cache.fetch(KEY), len(notices)) == (None, 1)


@pytest.mark.parametrize(
    ("remote", "code"),
    [
        ("https://user:secret@cache.example/x", "cache-remote-has-credentials"),
        ("https://secret@cache.example", "cache-remote-has-credentials"),
        ("cache.example", "cache-remote-invalid"),
        ("ftp://cache.example", "cache-remote-invalid"),
        ("https:///x", "cache-remote-invalid"),
        ("https://cache.example:port", "cache-remote-invalid"),
        ("https://cache.example/x?token=secret", "cache-remote-invalid"),
        ("https://cache.example/\x1b[2J", "cache-remote-invalid"),
        ("https://[::1", "cache-remote-invalid"),
    ],
)
def test_other_addresses_are_refused_without_their_secrets(remote: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_cache(CacheSettings(remote=remote), fails)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert "secret" not in json.dumps([str(caught.value), repr(caught.value)])


def test_a_token_that_no_header_can_contain_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE_TOKEN", "secret\r\nX: y")
    with pytest.raises(UsageError) as caught:
        open_cache(CacheSettings(remote="https://cache.example"), fails)
    assert (caught.value.code, "secret" in str(caught.value)) == ("cache-token-invalid", False)
