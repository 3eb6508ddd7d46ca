"""A serial line between the host and a board that QEMU emulates, which tests disturb; firmware with mlf_serial.c."""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.targets import RUNTIME
from support.device_firmware import device_firmware

UARTS = {
    "mps2-an385": 0x40004000, "mps2-an386": 0x40004000, "mps2-an500": 0x40004000, "mps2-an505": 0x50200000,
    "mps3-an547": 0x59303000,
}  # fmt: skip
"""The first CMSDK UART of each board, at its Secure address."""
UART = r"""
#include "mlf_serial.h"

static volatile uint32_t *const uart = (volatile uint32_t *)UART; /* data, state, control, interrupts, divider */

__attribute__((constructor)) static void start_uart(void)
{
    uart[4] = 16;
    uart[2] = SLEEPS ? 11 : 3;
    (void)uart[0]; /* QEMU looks for bytes that have arrived before only after a read */
#if SLEEPS
    __asm__ volatile("cpsid i");
    *(volatile uint32_t *)0xE000E100 = 1; /* interrupt 0 wakes the core, and is never taken */
#endif
}

int mlf_serial_get(void)
{
#if SLEEPS
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception));
    if (exception == 0 && (uart[1] & 2u) == 0) { __asm__ volatile("wfi"); } /* else QEMU takes a core for each test */
    uart[3] = 2;
    *(volatile uint32_t *)0xE000E280 = 1;
#endif
    return (uart[1] & 2u) != 0 ? (int)(uart[0] & 0xFFu) : -1;
}

void mlf_serial_put(uint8_t byte)
{
    while ((uart[1] & 1u) != 0) {
    }
    uart[0] = byte;
}
"""
APP = r"""
extern char __data_start[], __data_end[], __data_load[], __stack_top[];
extern uint32_t __bss_start[], __bss_end[];
void Reset_Handler(void);

__attribute__((section(".vectors"), used)) const void *const vectors[16] = {__stack_top, (void *)Reset_Handler};

volatile uint8_t input[1000];
volatile uint32_t command, runs, total;
volatile uint32_t starts = 41;
const char label[] = "a constant in flash";

static void say(const char *text)
{
    while (*text != 0) { mlf_serial_put((uint8_t)*text++); }
}

void Reset_Handler(void)
{
    for (uint32_t *word = __bss_start; word < __bss_end; word++) { *word = 0; }
    for (int i = 0; i < __data_end - __data_start; i++) { __data_start[i] = __data_load[i]; }
    starts = starts + 1;
    start_uart();
    say("started\n");
    for (;;) {
        if (mlf_serial_serve()) {
            total = 0;
            for (unsigned i = 0; i < sizeof input; i++) { total = total * 31 + input[i]; }
            runs = runs + 1;
            if (command == 1) { *(volatile uint32_t *)0xE000ED0C = 0x05FA0004; for (;;) { } }
            if (command == 2) { for (volatile uint32_t i = 0; i < 50000000; i++) { } }
            if (command == 3) { say("ran\n"); }
        }
    }
}
"""


def uart_source(board: str) -> str:
    """Return C of the two functions that mlf_serial.c needs, for the first UART of ``board``."""
    sleeps = int(UARTS[board] == 0x40004000)
    return f"#define UART {UARTS[board]:#x}\n#define SLEEPS {sleeps}\n{UART}"


def serial_firmware(
    folder: Path, *options: str, board: str = "mps2-an385", uart: str = "", text: str = "", **places: object
) -> Path:
    """Build firmware that answers on the UART of ``board``, or by the functions ``uart``; ``text`` is more C."""
    source = '#include "mlf_serial.c"\n' + (uart or uart_source(board)) + APP + text
    return device_firmware(folder, f"-I{RUNTIME / 'serial'}", *options, source=source, **places)  # type: ignore[arg-type]


@dataclass
class Noise:
    """Disturbances, each with a probability per byte."""

    lost: float = 0
    damaged: float = 0
    doubled: float = 0
    delayed: float = 0
    random: random.Random = field(default_factory=lambda: random.Random(22))

    def of(self, data: bytes) -> bytes:
        """Return ``data`` as it arrives."""
        if self.random.random() < 1 - (1 - self.delayed) ** len(data):
            time.sleep(self.random.random() / 50)
        arrived = bytearray()
        for byte in data:
            chance = self.random.random()
            if chance < self.lost:
                continue
            if chance < self.lost + self.damaged:
                arrived.append(byte ^ 1 << self.random.randrange(8))
            else:
                arrived.append(byte)
                if chance < self.lost + self.damaged + self.doubled:
                    arrived.append(byte)
        return bytes(arrived)


class Line:
    """A line; the host opens ``url``, and QEMU connects to ``chardev``."""

    def __init__(self, *, tty: bool = False) -> None:
        self.noise = Noise()
        self._device_server = socket.create_server(("127.0.0.1", 0))
        self.chardev = f"tcp:127.0.0.1:{self._device_server.getsockname()[1]},nodelay=on"
        self._device: socket.socket | None = None
        self._host: socket.socket | None = None
        self._tty: tuple[int, int] | None = None
        self._host_server = None if tty else socket.create_server(("127.0.0.1", 0))
        if self._host_server is None:
            self._tty = os.openpty()
            self.url = os.ttyname(self._tty[1])
        else:
            self.url = f"socket://127.0.0.1:{self._host_server.getsockname()[1]}"
        self._ended = threading.Event()
        self.transferred = 0
        self.hang_up_after: int | None = None
        """Number of further bytes after which the host's connection is closed."""
        self._thread = threading.Thread(target=self._transfer, daemon=True)
        self._thread.start()

    def _transfer(self) -> None:
        while not self._ended.is_set():
            from_host = self._tty[0] if self._tty else self._host
            sources = [self._device_server, self._host_server, self._device, from_host]
            ready, _, _ = select.select([each for each in sources if each is not None], [], [], 0.02)
            for source in ready:
                if source is self._device_server:
                    self._device = _accepted(self._device_server)
                elif source is self._host_server:
                    assert self._host_server is not None
                    self._host = _accepted(self._host_server)
                elif source is self._device:
                    self._pass(from_device=True)
                else:
                    self._pass(from_device=False)

    def _pass(self, *, from_device: bool) -> None:
        time.sleep(0.0005)  # QEMU sends single bytes
        source = self._device if from_device else self._host
        try:
            data = os.read(self._tty[0], 4096) if source is None and self._tty else source.recv(4096)  # type: ignore[union-attr]
        except OSError:
            data = b""
        if not data:
            if source is not None:
                source.close()
            if from_device:
                self._device = None
            else:
                self._host = None
            return
        self.transferred += len(data)
        if self.hang_up_after is not None:
            self.hang_up_after -= len(data)
            if self.hang_up_after <= 0:
                self.hang_up_after = None
                self.hang_up()
        with contextlib.suppress(OSError):
            self._send(self.noise.of(data), to_host=from_device)

    def _send(self, data: bytes, *, to_host: bool) -> None:
        if to_host and self._tty:
            os.write(self._tty[0], data)
        else:
            target = self._host if to_host else self._device
            if target is not None:
                target.sendall(data)

    def send_to_host(self, data: bytes) -> None:
        """Send something that no firmware sent."""
        self._send(data, to_host=True)

    def hang_up(self) -> None:
        """Close the connection of the host, which may connect again."""
        host, self._host = self._host, None
        if host is not None:
            host.close()

    def close(self) -> None:
        """End the line. It may be called twice."""
        self._ended.set()
        self._thread.join()
        for each in (self._device_server, self._host_server, self._device, self._host):
            if each is not None:
                each.close()
        for descriptor in self._tty or ():
            os.close(descriptor)
        self._tty = None


def _accepted(server: socket.socket) -> socket.socket:
    connection = server.accept()[0]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


@contextlib.contextmanager
def line(*, tty: bool = False) -> Iterator[Line]:
    """Return a line for the block."""
    one = Line(tty=tty)
    try:
        yield one
    finally:
        one.close()


@contextlib.contextmanager
def board_on(one: Line, image: Path, board: str = "mps2-an385", port: int = 0) -> Iterator[None]:
    """Have QEMU run a board, with its serial port ``port`` at the end of a line, for the block.

    Its flash is ``image``: a test that replaces that file restarts the board with ``flash_command``.
    """
    ended = threading.Event()
    processes: list[subprocess.Popen[bytes]] = []

    def run() -> None:
        while not ended.is_set():
            words = ["qemu-system-arm", "-M", board, "-display", "none", "-monitor", "none"]
            words += [*port * ["-serial", "null"], "-serial", one.chardev]
            process = subprocess.Popen([*words, "-kernel", str(image)], stderr=subprocess.DEVNULL)
            processes.append(process)
            image.with_suffix(".pid").write_text(str(process.pid))
            process.wait()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        while thread.is_alive():
            for process in processes:
                process.kill()
            thread.join(0.05)


def flash_command(flash: Path) -> tuple[str, ...]:
    """Return a command that writes ``{elf}`` into the flash of a board and notes that it did."""
    pid, log = flash.with_suffix(".pid"), flash.with_suffix(".log")
    script = f'cp "$0" {flash} && kill $(cat {pid}) && echo "$0" >>{log} && echo flashed'
    return ("sh", "-c", script, "{elf}")
