"""``examples/field-update``: blobs over the serial port of QEMU, good, cut, damaged, old and of another structure."""

import importlib.util
import os
import random
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.library import ParameterBlob, read_blob
from support import warm
from support.examples import swept

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples/field-update"
BOARDS = {"m4": "mps2-an386", "m55": "mps3-an547"}
SWEEP = pytest.mark.sweep
REFUSED, TEST, STRUCTURE, CHECKSUM, OLD = -11, -12, -8, -10, -102


def sender(folder: Path) -> Any:
    """Return the module ``update.py`` of the example in ``folder``."""
    spec = importlib.util.spec_from_file_location("field_update", folder / "update.py")
    assert spec is not None and spec.loader is not None
    update = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(update)
    return update


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
    return sender(folder), BOARDS[target], folder / f"build/{target}/app/app.elf", (folder / "2.bin").read_bytes()


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


def run(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)


def configured(folder: Path, key: str, mbedtls: Path) -> subprocess.CompletedProcess[str]:
    """Configure the firmware with signatures in the example in ``folder``, for a key of its folder."""
    package = REPOSITORY / "cmake"
    given = {"mlfbuild_DIR": package, "CMAKE_TOOLCHAIN_FILE": package / "toolchains/cortex-m4.cmake"}
    given |= {"MBEDTLS_DIR": mbedtls, "PUBLIC_KEY": folder / key}
    words = (f"-D{name}={value}" for name, value in given.items())
    return run(folder, "cmake", "-S", "signed", "-B", "build/signed", "-G", "Ninja", *words)


def signature(folder: Path, key: str, blob: bytes) -> bytes:
    """Return the signature of ``blob`` by a private key, as ``docs/field-updates.md`` makes it."""
    (folder / "signed.bin").write_bytes(blob)
    words = ("openssl", "dgst", "-sha256", "-sign", f"{key}.pem", "-out", "signed.sig", "signed.bin")
    assert run(folder, *words).returncode == 0
    return (folder / "signed.sig").read_bytes()


@SWEEP
def test_only_signed_blobs_are_used(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gcc", "openssl")
    if not (place := os.environ.get("MLFBUILD_MBEDTLS")):
        pytest.skip("MLFBUILD_MBEDTLS names no sources of Mbed TLS 2.28: `apt-get source mbedtls` gets them")
    folder = tmp_path / "field-update"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    for name in ("ours", "theirs"):
        run(folder, "openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.pem")
        run(folder, "openssl", "ec", "-in", f"{name}.pem", "-pubout", "-outform", "DER", "-out", f"{name}.der")
    assert "MBEDTLS_DIR: no sources" in configured(folder, "ours.der", folder).stderr
    assert "not a public key on P-256" in configured(folder, "ours.pem", Path(place)).stderr
    for done in (configured(folder, "ours.der", Path(place)), run(folder, "cmake", "--build", "build/signed", "-j1")):
        assert done.returncode == 0 and "warning" not in done.stdout, done.stdout + done.stderr
    words = ("--for", "digits", "--target", "m4", "--number", "2", "--self-test", "3", "-o", "2.bin")
    done = run(folder, sys.executable, "-m", "mlfbuild", "parameters", "models/digits-v2.tflite", *words)
    assert done.returncode == 0, done.stderr
    blob = (folder / "2.bin").read_bytes()
    right = signature(folder, "ours", blob)
    assert len(blob) % 16 == 0 and right[0] == 0x30
    two = parsed(blob)
    three, value = replace(two, version=3).data(), bytearray(blob)
    value[3000] ^= 1
    flipped = with_hash(bytes(value), blob[48:80])
    full = replace(two, vectors=two.vectors[:1] * 302).data()  # 64 bytes less than a slot
    bad = {
        "missing": blob,
        "wrong key": blob + signature(folder, "theirs", blob),
        "another version": three + right,
        "truncated": blob + right[:64],
        "truncated, with the length of that": blob + b"\x30\x3e" + right[2:64],
        "long": blob + b"\x30\xff" + right[2:],
        "damaged": blob + right[:-1] + bytes([right[-1] ^ 1]),
        "zeros": blob + bytes.fromhex("3006020100020100"),
        "beyond the slot": full + signature(folder, "ours", full)[:64],
    }
    device, running = sender(folder).start(BOARDS["m4"], folder / "build/signed/signed.elf")
    with running:
        for case, each in bad.items():
            assert (case, device.send(each)) == (case, REFUSED)
            assert (device.ask("V"), device.ask("S"), device.ask("Z")) == (0, -1, -1), case
        assert device.send(flipped + right) in (REFUSED, TEST)  # the test vectors run first
        assert device.ask("V") == 0
        assert device.send(blob + right) == 0
        assert (device.ask("V"), device.ask("Z"), device.ask("V")) == (2, 0, 2)
        assert device.send(three + right) == REFUSED
        assert device.send(three + signature(folder, "ours", three)) == 0
        assert (device.ask("V"), device.ask("S"), device.ask("Z"), device.ask("V")) == (3, 1, 1, 3)
        device.stop()
        assert running.wait(20) == 0
