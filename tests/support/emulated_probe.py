"""A debug probe of pyOCD whose microcontroller is emulated by QEMU.

pyOCD talks to the debug port and the access port of a Cortex-M3 (IHI 0031), and through it to the memory of the core
and to its debug registers (DDI 0403, part C). QEMU emulates the core and its memory; this file emulates the ports,
DHCSR, DCRSR, DEMCR, the breakpoint unit and the ROM table, which QEMU does not have.
"""

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyocd.core import exceptions
from pyocd.core.memory_map import FlashRegion, MemoryMap, RamRegion
from pyocd.coresight.coresight_target import CoreSightTarget
from pyocd.flash.flash import Flash
from pyocd.probe.debug_probe import DebugProbe
from pyocd.target import TARGET

from mlfbuild.core import MlfError
from mlfbuild.project import RunnerKeys
from mlfbuild.runners.gdb import Gdb
from mlfbuild.runners.qemu import EmulatedBoard

DHCSR, DCRSR, DCRDR, DEMCR, AIRCR = 0xE000EDF0, 0xE000EDF4, 0xE000EDF8, 0xE000EDFC, 0xE000ED0C
C_DEBUGEN, C_HALT, C_STEP, S_REGRDY, S_HALT, S_RESET_ST = 1, 1 << 1, 1 << 2, 1 << 16, 1 << 17, 1 << 25
VC_CORERESET, SYSRESETREQ = 1, 1 << 2
FPB, COMPARATORS = 0xE0002000, 6
ROM_TABLE = 0xE00FF000
COMPONENTS = {0xE000E000: 0x000, 0xE0002000: 0x003}
"""Part numbers of the system control space and the breakpoint unit."""
REGISTERS = [*(f"r{number}" for number in range(13)), "sp", "lr", "pc", "xpsr"]


def identification(part: int, component_class: int) -> dict[int, int]:
    """Return the registers PIDR and CIDR, by offset."""
    pidr = 0x4_000BB000 | part
    values = {0xFD0: pidr >> 32, **{0xFE0 + 4 * n: pidr >> 8 * n & 0xFF for n in range(4)}}
    return values | dict(zip(range(0xFF0, 0x1000, 4), (0x0D, component_class << 4, 0x05, 0xB1), strict=True))


class EmulatedProbe(DebugProbe):
    """The probe; ``board`` is the emulated board, driven by GDB."""

    unique_id = "EMULATED"
    is_open = False
    wire_protocol: Any = None
    vendor_name, product_name = "mlfbuild", "probe"
    supported_wire_protocols = (DebugProbe.Protocol.DEFAULT, DebugProbe.Protocol.SWD)
    capabilities = {  # noqa: RUF012
        DebugProbe.Capability.MANAGED_AP_SELECTION,
        DebugProbe.Capability.MANAGED_DPBANKSEL,
        DebugProbe.Capability.BANKED_DP_REGISTERS,
    }

    def __init__(self, board: Gdb) -> None:
        super().__init__()
        self.board = board
        self.unplugged = False
        self.power = self.csw = self.tar = self.demcr = self.data = 0
        self.was_reset = False
        self.words = {FPB: COMPARATORS << 4}
        for origin, part in COMPONENTS.items():
            self.words |= {origin + at: value for at, value in identification(part, 0xE).items()}
        self.words |= {ROM_TABLE + at: value for at, value in identification(0x4C3, 0x1).items()}
        for index, origin in enumerate([*COMPONENTS, 0]):
            self.words[ROM_TABLE + 4 * index] = (origin - ROM_TABLE & 0xFFFFF000) | 3 if origin else 0
        self.comparators = [0] * COMPARATORS

    # The probe itself -------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def connect(self, protocol: Any = None) -> None:  # noqa: ARG002
        self.wire_protocol = DebugProbe.Protocol.SWD

    def disconnect(self) -> None:
        self.wire_protocol = None

    def set_clock(self, frequency: float) -> None:
        pass

    def assert_reset(self, asserted: bool) -> None:
        if not asserted:
            self.reset()

    def is_reset_asserted(self) -> bool:
        return False

    def reset(self) -> None:
        self.halt()
        self.board.reset()
        self.was_reset = True
        if not self.demcr & VC_CORERESET:
            self.resume()

    # Ports ------------------------------------------------------------------------------------------------------------

    def read_dp(self, addr: int, now: bool = True) -> Any:
        self.check()
        value = {0x0: 0x2BA01477, 0x4: self.power | self.power << 1}.get(addr & 0xC, 0)
        return value if now else lambda: value

    def write_dp(self, addr: int, data: int) -> None:
        self.check()
        if addr & 0xC == 0x4:
            self.power = data & 0x50000000

    def read_ap(self, addr: int, now: bool = True) -> Any:
        value = self.read_ap_multiple(addr, 1)[0]
        return value if now else lambda: value

    def write_ap(self, addr: int, data: int) -> None:
        self.write_ap_multiple(addr, [data])

    def read_ap_multiple(self, addr: int, count: int = 1, now: bool = True) -> Any:
        self.check()
        register = addr & 0xFF
        if addr >> 24:
            values = [0] * count
        elif register == 0x0C:
            values = self.read_words(count)
        elif 0x10 <= register < 0x20:
            values = [self.read_word((self.tar & ~15) + register - 0x10)]
        else:
            known = {0xFC: 0x24770011, 0xF8: ROM_TABLE | 3, 0x00: self.csw | 0x40, 0x04: self.tar}
            values = [known.get(register, 0)] * count
        return values if now else lambda: values

    def write_ap_multiple(self, addr: int, values: Sequence[int]) -> None:
        self.check()
        register = addr & 0xFF
        if register == 0x00:
            self.csw = values[0]
        elif register == 0x04:
            self.tar = values[0]
        elif register == 0x0C:
            self.write_words(values)
        elif 0x10 <= register < 0x20:
            self.write_word((self.tar & ~15) + register - 0x10, values[0])

    def check(self) -> None:
        if self.unplugged:
            raise exceptions.ProbeDisconnected("the probe was unplugged")

    def swo_start(self, baudrate: float) -> None:
        raise NotImplementedError

    # Memory -----------------------------------------------------------------------------------------------------------

    def read_words(self, count: int) -> list[int]:
        size = 1 << (self.csw & 7)
        first, self.tar = self.tar, self.tar + size * count
        if size == 4 and count > 1 and not self.is_debug(first):
            return list(struct.unpack(f"<{count}I", self.guarded(lambda: self.board.read(first, 4 * count))))
        if size == 4:
            return [self.read_word(first + 4 * index) for index in range(count)]
        found = []
        for address in range(first, first + size * count, size):
            value = int.from_bytes(self.guarded(lambda at=address: self.board.read(at, size)), "little")
            found.append(value << 8 * (address & 3))
        return found

    def write_words(self, values: Sequence[int]) -> None:
        size = 1 << (self.csw & 7)
        first, self.tar = self.tar, self.tar + size * len(values)
        if size == 4 and len(values) == 1:
            self.write_word(first, values[0])
            return
        lanes = [value >> 8 * (first + size * index & 3) for index, value in enumerate(values)]
        data = b"".join((lane & (1 << 8 * size) - 1).to_bytes(size, "little") for lane in lanes)
        self.guarded(lambda: self.board.write(first, data))

    def is_debug(self, address: int) -> bool:
        return address & 0xFFFFF000 in {*COMPONENTS, ROM_TABLE}

    def guarded(self, access: Callable[[], Any]) -> Any:
        """Access memory; the core of QEMU has to stand still for that."""
        running = not self.is_halted()
        self.halt()
        try:
            return access()
        except MlfError as error:
            raise exceptions.TransferFaultError(str(error)) from None
        finally:
            if running:
                self.resume()

    def read_word(self, address: int) -> int:
        if address == DHCSR:
            return self.status()
        if address in {DCRDR, DEMCR}:
            return self.data if address == DCRDR else self.demcr
        if self.is_debug(address) and (address in self.words or not 0 < address & 0xFFF < 0xFD0):
            return self.words.get(address, 0)
        return int.from_bytes(self.guarded(lambda: self.board.read(address, 4)), "little")

    def write_word(self, address: int, value: int) -> None:
        if address == DHCSR:
            self.control(value)
        elif address == DCRDR:
            self.data = value
        elif address == DEMCR:
            self.demcr = value
        elif address == DCRSR:
            self.transfer(value & 0x7F, bool(value >> 16 & 1))
        elif address == AIRCR:
            if value & SYSRESETREQ:
                self.reset()
        elif FPB + 8 <= address < FPB + 8 + 4 * COMPARATORS:
            self.comparators[(address - FPB - 8) // 4] = value
        elif address != FPB:
            self.guarded(lambda: self.board.write(address, value.to_bytes(4, "little")))

    # The core ---------------------------------------------------------------------------------------------------------

    def status(self) -> int:
        halted = self.is_halted()
        sticky, self.was_reset = self.was_reset, False
        return C_DEBUGEN | S_REGRDY | (S_HALT | C_HALT if halted else 0) | (S_RESET_ST if sticky else 0)

    def control(self, value: int) -> None:
        if value >> 16 != 0xA05F:
            return
        running = self.board._client.stop is None
        if value & C_HALT:
            self.halt()
        elif not running and value & C_STEP:
            self.board._set_breakpoints(())
            self.board._run("-exec-step-instruction", 5, ())
        elif not running:
            self.resume()

    def is_halted(self) -> bool:
        return self.board._client.wait_for_stop(0) is not None

    def halt(self) -> None:
        if not self.is_halted():
            self.board._halt(5)

    def resume(self) -> None:
        wanted = [(each & 0x1FFFFFFC) | (each >> 30 == 2) << 1 for each in self.comparators if each & 1]
        self.board._set_breakpoints(wanted)
        self.board._ask("-exec-continue")

    def transfer(self, number: int, write: bool) -> None:
        name = REGISTERS[number] if number < len(REGISTERS) else "sp" if number == 17 else ""
        if name and write:
            self.board.set_registers({name: self.data})
        elif name:
            self.data = self.board.registers()[name]
        elif not write:
            self.data = 0


class EmulatedFlash(Flash):
    """Flash whose algorithm is a write to memory; ``protected`` sectors keep what they contain."""

    protected: tuple[int, ...] = ()

    def __init__(self, target: Any) -> None:
        algorithm = {
            "load_address": 0x20000000, "instructions": [0] * 256, "pc_init": 0x20000021, "pc_unInit": 0x20000071,
            "pc_program_page": 0x20000185, "pc_erase_sector": 0x20000185, "pc_eraseAll": 0x20000185,
            "static_base": 0x20000200, "begin_stack": 0x20001000, "begin_data": 0x20002000, "page_size": 1024,
            "analyzer_supported": False, "analyzer_address": 0, "page_buffers": [0x20002000],
        }  # fmt: skip
        super().__init__(target, algorithm)

    def init(self, *args: Any, **keywords: Any) -> None:
        pass

    def uninit(self) -> None:
        pass

    def cleanup(self) -> None:
        pass

    def erase_sector(self, address: int) -> None:
        self.program_page(address, [0xFF] * 1024)

    def erase_all(self) -> None:
        raise NotImplementedError

    def program_page(self, address: int, bytes_: Sequence[int]) -> None:
        if address not in self.protected:
            self.target.write_memory_block8(address, bytes_)


class EmulatedPart(CoreSightTarget):
    """A microcontroller with 32 KiB of flash and 64 KiB of RAM."""

    VENDOR = "mlfbuild"

    def __init__(self, session: Any) -> None:
        flash = FlashRegion(
            name="flash", start=0, length=32 * 1024, blocksize=1024, is_boot_memory=True, flash_class=EmulatedFlash
        )
        super().__init__(session, MemoryMap(flash, RamRegion(name="ram", start=0x20000000, length=64 * 1024)))


@contextlib.contextmanager
def emulated_probe(protected: tuple[int, ...] = ()) -> Iterator[EmulatedProbe]:
    """Connect a probe to an emulated board, for the target type ``emulated``."""
    EmulatedFlash.protected = protected
    TARGET["emulated"] = EmulatedPart
    board = EmulatedBoard(RunnerKeys(qemu="mps2-an385"), "the emulated board of the probe", ())
    try:
        yield EmulatedProbe(board)
    finally:
        board.close()
        EmulatedFlash.protected = ()
