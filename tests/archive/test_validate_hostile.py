"""``validate`` completes on damaged archives and on archives with many modules."""

import random
from datetime import datetime, timezone

import pytest

from mlfbuild.archive.validate import validate
from mlfbuild.core.errors import InputFileError
from support.sound_archives import (
    BUNDLE,
    METADATA,
    NET_GRAPH,
    TINY_HEADER,
    TINY_SOURCE,
    Files,
    net,
    operator,
    tiny,
    tiny_module,
    with_bundle,
)
from support.steps import assert_linear

NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)


def spoiled(content: bytes, choose: random.Random) -> bytes:
    """Return ``content`` with a few bytes changed, or a part removed or repeated."""
    data = bytearray(content)
    for _ in range(choose.randrange(1, 3)):
        at, length = choose.randrange(len(data) + 1), choose.randrange(1, 12)
        match choose.randrange(4):
            case 0:
                data[at : at + 1] = bytes([choose.randrange(256)])
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case _:
                data[at : at + length] = choose.choice(
                    [b"0", b"-1", b'"', b"null", b"{}", b"[]", b"99999999999999999999"]
                )
    return bytes(data)


@pytest.mark.parametrize(
    ("files", "path"),
    [
        (tiny(), METADATA), (net(), METADATA), (operator(), METADATA), (net(), NET_GRAPH), (tiny(), TINY_SOURCE),
        (tiny(), TINY_HEADER), (with_bundle(tiny_module()), BUNDLE),
    ],
    ids=["native metadata", "graph metadata", "operator metadata", "graph", "source", "header", "bundle"],
)  # fmt: skip
def test_damaged_files_never_stop_validation(files: Files, path: str) -> None:
    judged = 0
    for seed in range(300):
        try:
            report = validate({**files, path: spoiled(files[path], random.Random(seed))}, "a.tar", NOW)
        except InputFileError:
            continue
        judged += 1
        assert all(f"{finding.place}{finding.message}".isprintable() for finding in report.findings)
    assert judged


def test_many_modules_are_validated_in_linear_time() -> None:
    header = b"static inline int twice(int x) { return 2 * x; }\n" * 100

    def check(modules: int) -> None:
        names = [f"m{number}" for number in range(modules)]
        files = {**tiny(*names), **{f"codegen/host/src/mlfbuild/k{n}.h": header for n in range(20)}}
        assert validate(files, "a.tar", NOW).findings == ()

    assert_linear(check, 25)
