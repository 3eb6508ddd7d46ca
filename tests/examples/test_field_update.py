"""``examples/field-update``: blobs over the serial port of QEMU, good, cut, damaged, old and of another structure."""

import importlib.util
import random
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.library import ParameterBlob, read_blob
from support import warm
from support.examples import swept

EXAMPLE = Path(__file__).parents[2] / "examples/field-update"
BOARDS = {"m4": "mps2-an386", "m55": "mps3-an547"}
SWEEP = pytest.mark.sweep
REFUSED, TEST, STRUCTURE, CHECKSUM, OLD = -11, -12, -8, -10, -102


@pytest.fixture(scope="module", params=["m4", pytest.param("m55", marks=SWEEP)])
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]
) -> tuple[Any, str, Path, bytes]:
    """The module ``update.py``, the board, the image, and the blob of version 2 with three test vectors."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gcc")
    folder = tmp_path_factory.mktemp("example") / "field-update"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    target = request.param
    words = ("--for", "digits", "--target", target, "--number", "2", "--self-test", "3", "-o", "2.bin")
    for command in (("build", "--target", target, "-j", "1"), ("parameters", "models/digits-v2.tflite", *words)):
        done = warm.run("mlfbuild", *command, cwd=folder)
        assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("field_update", folder / "update.py")
    assert spec is not None and spec.loader is not None
    update = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(update)
    return update, BOARDS[target], folder / f"build/{target}/app/app.elf", (folder / "2.bin").read_bytes()


@pytest.fixture
def device(built: tuple[Any, str, Path, bytes]) -> Iterator[Any]:
    update, board, image, _ = built
    device, running = update.start(board, image)
    with running:
        yield device
        device.stop()
        assert running.wait(20) == 0


def with_hash(blob: bytes, sha256: bytes) -> bytes:
    """Return ``blob`` with another hash, and the CRC-32 that fits."""
    rest = blob[16:48] + sha256 + blob[80:]
    return blob[:12] + struct.pack("<I", zlib.crc32(rest)) + rest


def parsed(blob: bytes) -> ParameterBlob:
    return read_blob(blob, "2.bin", vector=64 + 16)


def test_versions_are_taken_and_bad_ones_are_not(device: Any, built: tuple[Any, str, Path, bytes]) -> None:
    blob = built[3]
    assert (device.ask("V"), device.ask("S")) == (0, -1)
    two = parsed(blob)
    wrong = bytes(64) + two.vectors[0][64:]
    bad = {
        REFUSED: with_hash(blob, bytes(32)),
        STRUCTURE: replace(two, structure="ab" * 32).data(),
        CHECKSUM: blob[:-1] + bytes([blob[-1] ^ 1]),
        TEST: replace(two, vectors=(wrong, *two.vectors[1:])).data(),
        OLD: replace(two, version=0).data(),
    }
    # A byte takes QEMU's port 0.1 ms, so that a push sends few blobs.
    for result, each in bad.items() if swept() else [(TEST, bad[TEST])]:
        assert device.send(each) == result
        assert (device.ask("V"), device.ask("S"), device.ask("Z")) == (0, -1, -1)
    assert device.send(blob) == 0
    assert (device.ask("V"), device.ask("S")) == (2, 0)
    three = replace(two, version=3).data()
    # The other slot: after a cut, and after a wrong hash, version 2 is there again.
    assert device.send(three, cut=2048) == 0
    assert device.ask("V") == 2
    assert device.send(with_hash(three, bytes(32))) == REFUSED
    assert (device.ask("Z"), device.ask("V")) == (0, 2)
    if swept():
        assert device.send(three) == 0
        assert (device.ask("S"), device.ask("Z"), device.ask("V")) == (1, 1, 3)
        assert device.send(blob) == OLD
    assert device.ask("R", 0, bytes(64)) in range(10)


@SWEEP
def test_damage_anywhere_is_never_used(device: Any, built: tuple[Any, str, Path, bytes]) -> None:
    blob, drawn = built[3], random.Random(0)
    places = [drawn.randrange(128) for _ in range(20)] + [drawn.randrange(len(blob)) for _ in range(20)]
    for place in places:
        damaged = bytearray(blob)
        damaged[place] ^= drawn.randrange(1, 256)
        assert device.send(bytes(damaged)) != 0, place
        assert device.send(blob, cut=place // 16 * 16) == -1, place
        assert device.ask("V") == 0
