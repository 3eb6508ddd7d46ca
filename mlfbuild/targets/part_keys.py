"""The keys of a microcontroller, in mlfbuild's tables (``data/mcus_*.toml``) and in project files.

``TimingKeys`` is also the section ``timing`` of a target, whose values change those of its ``mcu`` or describe a part
of its own, and ``DeviceMemoryKeys`` is ``memory`` of its runner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from mlfbuild.core import Mistake, in_quotes
from mlfbuild.core.keys import (
    FREQUENCY_TEXT,
    NOT_EMPTY,
    Convert,
    Count,
    Frequency,
    Keys,
    Percent,
    Rule,
    Size,
    named,
    one_of,
    parse_frequency,
)

_NAME = named("memory", r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, no digit first")
_CACHE_NAME = named("cache", r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, no digit first")
TIMED_CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85")
"""The cores that the cycle model knows; a test compares them with the model's own table."""


def _positive(value: int) -> Mistake | None:
    return None if value > 0 else Mistake("not-positive", reason=f"{value} is too small", hint="use a number above 0")


def _at_most(largest: int) -> Rule:
    def check(value: int) -> Mistake | None:
        if value <= largest:
            return None
        return Mistake("number-too-large", reason=f"{value:,} is too large", hint=f"use at most {largest:,}")

    return Rule(check)


def _power_of_two(value: int) -> Mistake | None:
    # A number with one bit set; 0 and negative numbers get the message about these instead.
    if value <= 0 or value & (value - 1) == 0:
        return _positive(value)
    return Mistake("not-a-power-of-two", reason=f"{value} is no power of two", hint="use one, such as 16")


def _origin(value: int) -> Mistake | None:
    if 0 <= value <= _LAST_ADDRESS:
        return None
    reason = f"{value:#x} is not an address of 32 bits"
    return Mistake("address-out-of-range", reason=reason, hint="write it like 0x08000000")


def _bit(value: int) -> Mistake | None:
    if 0 <= value <= 31:
        return None
    reason = f"{value} is not a bit of a register of 32 bits"
    return Mistake("number-too-large", reason=reason, hint="use 0 to 31")


def _clock(value: str) -> Mistake | None:
    if parse_frequency(value) is not None:
        return None
    reason = f"{in_quotes(value)} is not a frequency"
    return Mistake("invalid-quantity", reason=reason, hint="write it like 120 MHz")


_LAST_ADDRESS = 0xFFFF_FFFF
_Positive = Annotated[Count, Rule(_positive)]
_PositiveSize = Annotated[Size, Rule(_positive)]
_CacheSize = Annotated[Size, Rule(_positive), _at_most(16 << 20)]
_Width = Annotated[Size, Rule(_power_of_two), _at_most(4096)]
_Waits = Annotated[Count, _at_most(10_000)]
"""These limits are far beyond real parts. Without them, the plugin's sums of 64 bits could overflow."""
Address = Annotated[int, Rule(_origin, {"minimum": 0, "maximum": _LAST_ADDRESS})]
"""An address of 32 bits."""
_ClockName = Annotated[str, Rule(_clock, {"pattern": FREQUENCY_TEXT["pattern"]})]
_Policy = one_of("policy", ("lru", "round-robin", "pseudo-random"))


@dataclass(frozen=True)
class CacheKeys(Keys):
    """A cache between the core and its memories; a value that is left out is that of the table."""

    TITLE = "cache"

    size: _CacheSize | None = None
    """Bytes: 8 KiB"""
    line: _Width | None = None
    """Bytes of one line: 32"""
    ways: _Positive | None = None
    """Lines of a set; size divided by line for a fully associative cache: 4"""
    policy: Annotated[str, _Policy] | None = None
    """Which line of a set is replaced. Default: lru."""
    hit: _Waits | None = None
    """Wait states of an access that hits. Default: 0."""
    miss: _Waits | None = None
    """Cycles that a miss takes besides those of the memory. Default: 0."""
    write_back: bool | None = None
    """Whether it holds written lines back, and allocates lines for writes. Default: false."""
    sector: _Width | None = None
    """Bytes that a miss fills if parts of a line are valid independently. Default: the whole line."""


@dataclass(frozen=True)
class MemoryKeys(Keys):
    """A memory as the core sees it; a value that is left out is that of the table."""

    TITLE = "memory"

    size: _PositiveSize | None = None
    """Bytes: 1 MiB"""
    width: _Width | None = None
    """Bytes that one access reads, such as 16 for a flash that reads 128 bits at a time. Default: 4."""
    waits: _Waits | None = None
    """Wait states of an access. Default: 0, or those of `wait-states` at the target's clock."""
    wait_states: Annotated[Mapping[_ClockName, _Waits], NOT_EMPTY] = field(default_factory=dict)
    """Wait states by the highest clock that they suffice for, in ascending order: {24 MHz: 0, 48 MHz: 1}"""
    burst: _Waits | None = None
    """Wait states of each further access of a line fill, or of a word that is wider. Default: those of the first."""
    write_waits: _Waits | None = None
    """Wait states of a write. Default: 0."""
    hidden_waits: _Waits | None = None
    """Wait states of a load, without a cache, that the core does not notice. Default: 0."""
    fetch_waits: _Waits | None = None
    """Further wait states of an instruction fetch without a cache: 1 for RAM from 0x20000000 on with Cortex-M3 and M4.
    Default: 0."""
    prefetch: bool | None = None
    """Whether it reads the next `width` bytes of code while the core executes. Default: false."""
    fetch_cache: str | None = None
    """Cache that instruction fetches pass, by its name in `caches`; "" for none."""
    read_cache: str | None = None
    """Cache that loads pass, by its name in `caches`; "" for none."""


@dataclass(frozen=True)
class TimingKeys(Keys):
    """A microcontroller of your own for the cycle model, or values that differ from those of `mcu`."""

    TITLE = "timing"

    clock: Frequency | None = None
    """Highest clock of the core. Default: that of `mcu`, or the target's clock."""
    memories: Mapping[Annotated[str, _NAME], MemoryKeys] = field(default_factory=dict)
    """Memories by name: the first has code and constants, the second all other data. Names of linker `regions`, in
    lower case, have what is placed there."""
    caches: Mapping[Annotated[str, _CACHE_NAME], CacheKeys] = field(default_factory=dict)
    """Caches and line buffers, by the name that memories use."""


@dataclass(frozen=True)
class RegionKeys(Keys):
    """A region of a device's memory map."""

    TITLE = "memory region"

    origin: Address
    """First address: 0x08000000"""
    size: Size
    """Bytes: 512 KiB"""


@dataclass(frozen=True)
class DeviceMemoryKeys(Keys):
    """The memories that test firmware of mlfbuild is linked for."""

    TITLE = "device memory"

    ram: RegionKeys
    """RAM for data and the stack, and also for code if there is no `flash`."""
    flash: RegionKeys | None = None
    """Flash for code and constants. Default: none, everything is loaded into `ram`."""


@dataclass(frozen=True)
class PartMemoryKeys(DeviceMemoryKeys):
    """The memories of a microcontroller after reset."""

    source: str = field(kw_only=True)
    """Document with its section."""


@dataclass(frozen=True)
class SettingKeys(Keys):
    """The bits of a register that have a setting: 0 is off."""

    TITLE = "setting"

    register: Address
    """Address of the register: 0x40022000"""
    bit: Annotated[int, Rule(_bit, {"minimum": 0, "maximum": 31})] = 0
    """Number of the lowest bit. Default: 0."""
    bits: _Positive = 1
    """How many bits. Default: 1."""

    def value(self, read: Callable[[int], int]) -> int:
        """Return the setting; ``read`` returns the word at an address."""
        return read(self.register) >> self.bit & (1 << self.bits) - 1


@dataclass(frozen=True)
class ControlKeys(Keys):
    """The registers that have the settings of the first memory, which a running image may have changed."""

    TITLE = "control"

    source: str
    """Document with its section."""
    waits: SettingKeys | None = None
    """Wait states."""
    prefetch: SettingKeys | None = None
    """Prefetch."""
    fetch_cache: SettingKeys | None = None
    """The cache for code."""
    read_cache: SettingKeys | None = None
    """The cache for data."""

    def values(self, read: Callable[[int], int]) -> Mapping[str, int]:
        """Return the settings that have bits, by field; ``read`` returns the word at an address."""
        return {name: each.value(read) for name, each in vars(self).items() if isinstance(each, SettingKeys)}


# TOML has long texts in one string; sources and assumptions are lists of such texts.
def _paragraphs(value: object) -> list[str]:
    """Return the paragraphs of a text, which blank lines separate, one line each."""
    if not isinstance(value, str):
        raise Mistake("wrong-type", reason=f"expected text, got {value!r}")
    return [" ".join(each.split()) for each in value.strip().split("\n\n")]


_Paragraphs = Annotated[tuple[str, ...], Convert(_paragraphs, before=True)]


@dataclass(frozen=True)
class PartKeys(TimingKeys):
    """An entry of the tables of microcontrollers; a value that is left out is that of ``based_on``."""

    TITLE = "mcu"

    title: str = field(kw_only=True)
    """Description: ``STM32L4R5 and its family``."""
    based_on: str | None = None
    """An earlier entry, whose values this one changes."""
    cpu: str | None = None
    """Name in the table of CPUs."""
    error: Percent | None = None
    """Added to the stated error of the core for the memories."""
    sources: _Paragraphs = ()
    """Documents with their sections."""
    assumptions: _Paragraphs = ()
    """Settings of the part that are assumed, and values that no public document has."""
    memory: PartMemoryKeys | None = None
    """Regions for test firmware. Parts whose start from reset needs the vendor's configuration have none."""
    control: ControlKeys | None = None
    """The registers that have the settings of the first memory."""
