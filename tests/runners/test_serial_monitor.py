"""mlf_serial.c by itself: its size and warnings, and what it does with bytes that no host of ours sends."""

import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.runners.frames import Receiver, SerialFrame, encode
from mlfbuild.targets import RUNTIME
from support.examples import first_on_push

SERIAL = RUNTIME / "serial"
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wpedantic", "-Werror"]
C99 = ["-std=c99", "-Wstrict-prototypes", "-Wmissing-prototypes"]
COMPILERS = {
    "M0+": ["arm-none-eabi-gcc", "-mcpu=cortex-m0plus", *C99],
    "M4 with host calls": ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-DMLF_HOST_LINK", f"-I{RUNTIME / 'board'}", *C99],
    "M55": ["arm-none-eabi-gcc", "-mcpu=cortex-m55", *C99],
    "C++": ["arm-none-eabi-g++", "-mcpu=cortex-m4", "-std=c++11", "-x", "c++"],
    "this machine": ["gcc", *C99],
    "clang": ["clang", "--target=armv7em-none-eabi", "-ffreestanding", *C99],
}
PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static uint8_t memory[768]; /* the middle is the RAM that the host may write to */
#define MLF_SERIAL_RAM_BEGIN ((uint32_t)(uintptr_t)memory + 256u)
#define MLF_SERIAL_RAM_END ((uint32_t)(uintptr_t)memory + 512u)
#include "mlf_serial.c"

static int ended;
int mlf_serial_get(void) { const int byte = getchar(); ended |= byte == EOF; return byte == EOF ? -1 : byte; }
void mlf_serial_put(uint8_t byte) { (void)putchar(byte); }

int main(void)
{
    unsigned runs = 0;
    memset(memory, 0xA5, sizeof memory);
    while (!ended) { runs += (unsigned)mlf_serial_serve(); }
    for (int i = 0; i < 256; i++) {
        if (memory[i] != 0xA5 || memory[512 + i] != 0xA5) { return 1; }
    }
    fprintf(stderr, "%u %u\n", runs, (unsigned)(uintptr_t)memory);
    return 0;
}
"""
SESSION = 0x12345678


@pytest.mark.parametrize("words", first_on_push(COMPILERS.values(), len(COMPILERS) - 1), ids=COMPILERS)
def test_it_compiles_without_warnings(
    tmp_path: Path, words: list[str], tool: Callable[[str], str], newest_clang: dict[str, str]
) -> None:
    program = newest_clang["MLFBUILD_CLANG"] if words[0] == "clang" else tool(words[0])
    command = [program, *words[1:], *STRICT, "-Os", "-c", str(SERIAL / "mlf_serial.c"), "-o", "monitor.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    if words[0].startswith("arm"):
        sizes = subprocess.run([tool("arm-none-eabi-size"), "monitor.o"], cwd=tmp_path, capture_output=True, text=True)
        text, data, bss = map(int, sizes.stdout.splitlines()[1].split()[:3])
        assert text <= 1152
        assert data + bss <= 288


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """Return the monitor as a program of this machine, at addresses of 32 bits, with sanitizers."""
    folder = tmp_path_factory.mktemp("monitor")
    (folder / "monitor.c").write_text(PROGRAM)
    words = ["-g", "-fno-pie", "-no-pie", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{SERIAL}"]
    done = subprocess.run(
        [tool("gcc"), *words, "monitor.c", "-o", "monitor"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "monitor"


def answers(monitor: Path, sent: bytes) -> tuple[list[SerialFrame], int, int]:
    """Return the frames that the monitor sends, how often it ran, and the address of its memory."""
    done = subprocess.run([monitor], input=sent, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    runs, address = map(int, done.stderr.split())
    return [got for got in Receiver().feed(done.stdout) if isinstance(got, SerialFrame)], runs, address


def word(value: int) -> bytes:
    return value.to_bytes(4, "little")


@pytest.fixture(scope="module")
def memory(monitor: Path) -> int:
    return answers(monitor, b"")[2]


HELLO = encode("H", 0, word(SESSION))


def test_a_repeated_request_is_performed_once(monitor: Path) -> None:
    frames, runs, _ = answers(monitor, HELLO + 3 * encode("G", 1) + HELLO + 2 * encode("G", 2))
    assert runs == 2
    # Reports without a session, and those of the stop after each run, are repeated for each repeated request.
    assert [frame.kind for frame in frames] == [*"sh", *"gsss", "h", *"gss"]


def test_an_old_request_is_ignored(monitor: Path) -> None:
    frames, runs, _ = answers(monitor, HELLO + encode("Q", 1) + encode("Q", 2) + encode("G", 1) + encode("Q", 3))
    assert runs == 0
    assert [(frame.kind, frame.sequence) for frame in frames[2:]] == [("s", 1), ("s", 2), ("s", 3)]


def test_requests_before_a_session_show_that_there_is_none(monitor: Path, memory: int) -> None:
    frames, runs, _ = answers(monitor, encode("G", 1) + encode("W", 1, word(memory + 256) + b"x"))
    assert runs == 0
    assert [(frame.kind, frame.payload[:4]) for frame in frames] == 3 * [("s", bytes(4))]


def bad_pokes(memory: int) -> Iterator[bytes]:
    for address in (0, memory, memory + 255, memory + 505, memory + 512, 0xFFFFFFFC, 0xFFFFFFFF, memory - (1 << 31)):
        yield word(address % (1 << 32)) + bytes(8)


def test_writes_outside_ram_are_refused(monitor: Path, memory: int) -> None:
    pokes = list(bad_pokes(memory))
    sent = b"".join(encode("W", number + 1, poke) for number, poke in enumerate(pokes))
    frames, _, _ = answers(monitor, HELLO + sent)
    assert [(frame.kind, frame.payload) for frame in frames[2:]] == len(pokes) * [("e", b"\2")]
    whole = word(memory + 256) + bytes(range(240))
    frames, _, _ = answers(monitor, HELLO + encode("W", 1, whole) + encode("R", 2, word(memory + 256) + word(240)))
    assert [frame.kind for frame in frames[2:]] == ["w", "r"]
    assert frames[-1].payload == whole[4:]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("?", b""), ("R", b""), ("R", bytes(9)), ("R", word(0) + word(241)), ("W", b"abc"), ("C", bytes(4)), ("H", b"")],
)
def test_requests_that_make_no_sense_are_refused(monitor: Path, kind: str, payload: bytes) -> None:
    frames, _, _ = answers(monitor, HELLO + encode(kind, 1, payload))
    assert [(frame.kind, frame.payload) for frame in frames[2:]] == [("e", b"\1")]


@pytest.mark.parametrize("seed", first_on_push(range(200)))
def test_any_bytes_are_survived(monitor: Path, memory: int, seed: int) -> None:
    choice = random.Random(seed)
    sent = bytearray(HELLO)
    for _ in range(400):
        kind = choice.choice("HQWGXe\xffR")
        address = (
            memory + choice.randrange(-8, 776) if kind == "R" else choice.choice([memory + 256, choice.getrandbits(32)])
        )
        size = choice.randrange(200)
        if kind == "R":
            size = max(min(size, memory + 512 - address), 0)
            address = max(min(address, memory + 512), memory)
        payload = word(address) + (word(size) if kind == "R" else choice.randbytes(size))
        frame = bytearray(encode(kind if kind != "\xff" else "z", choice.randrange(256), payload))
        if choice.random() < 0.7:
            for _ in range(choice.randrange(1, 5)):
                frame[choice.randrange(len(frame))] = choice.randrange(256)
        sent += choice.choice([frame, frame, choice.randbytes(choice.randrange(600))])
    sent += b"\0" + HELLO + encode("H", 7, word(1)) + encode("R", 8, word(memory) + word(4))
    frames, _, _ = answers(monitor, bytes(sent))
    assert frames[-1] == SerialFrame("r", 8, b"\xa5\xa5\xa5\xa5")
