"""Write ``mlfbuild/targets/data/parts.csv``, memory maps of microcontrollers, from the target files of probe-rs.

    git clone https://github.com/probe-rs/probe-rs && git clone https://github.com/pyocd/pyOCD
    python scripts/parts.py probe-rs pyOCD

probe-rs (MIT or Apache-2.0) derives them from the makers' CMSIS-Packs. Only facts are taken: name, flash and RAM. Its
files state the architecture of the core, not its name, so ``SERIES`` has the cores, from the makers' data sheets.

Parts that differ in pins only share a row, whose name has ``?`` for the letter of the package's pins. Of the RAM, a row
has the largest contiguous part that needs no clock to be enabled after reset; of the flash, what the core starts from.
Parts that cannot start test firmware from flash without a boot stage of the maker have no flash, nor have parts that
keep settings in the middle of it.

``chips`` are probe-rs' names of the parts of a row; an ``x`` stands for any letter.
``pyocd`` is the target type that pyOCD (Apache-2.0) contains for them, if it contains one.
"""

from __future__ import annotations

import ast
import csv
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).resolve().parents[1] / "mlfbuild/targets/data/parts.csv"
SERIES = {
    r"stm32(c0|g0|l0|u0|wb0)": "cortex-m0plus",
    r"stm32f0": "cortex-m0",
    r"stm32(f1|f2|l1)": "cortex-m3",
    r"stm32(f3|f4|g4|l4|wb\d)": "cortex-m4",
    r"stm32wl": "cortex-m4+nofp",
    r"stm32(f7[67]|h7)": "cortex-m7",
    r"stm32f7": "cortex-m7+nofp.dp",
    r"stm32(h5|l5|u3|u5|wba)": "cortex-m33",
    r"nrf51": "cortex-m0",
    r"nrf52(805|810|811|820)": "cortex-m4+nofp",
    r"nrf52": "cortex-m4",
    r"nrf(53|54l|91)": "cortex-m33",
    r"at(samd21)": "cortex-m0plus",
    r"at(samd51|same5)": "cortex-m4",
    r"efr32[a-z]+1[1-4]?[pv]": "cortex-m4",
    r"efr32[a-z]+2": "cortex-m33",
    r"r7fa(4m1|4w1|6m[123]|6t1)": "cortex-m4",
    r"r7fa2": "cortex-m23",
    r"r7fa[46]": "cortex-m33",
    r"r7fa8": "cortex-m85",
    r"cy8c6": "cortex-m4",
    r"mimxrt106": "cortex-m7",
    r"max32(6[56]|690)": "cortex-m4",
    r"rp2040": "cortex-m0plus",
    r"rp235x$": "cortex-m33",
}
"""The beginning of a part's name in lower case -> its core; the first that matches."""
_BOOTED_BY_MAKER = re.compile(r"cy8c6|mimxrt|rp2")
_SETTINGS_IN_FLASH = re.compile(r"r7fa(2|4m1|4w1|6m[123]|6t1)")
"""Parts that keep option-setting memory from address 0x400, between code (user's manuals of RA2, RA4M1, RA6M1: OFS0,
OFS1 and the security MPU). Test firmware has code there, and what it happens to be could lock the part for ever."""
_NAMES = {"rp235x": ("rp2350",), "mimxrt1060": ("mimxrt1060", "mimxrt1061", "mimxrt1062")}
"""Names of parts that probe-rs lists by a name of several."""
_ALWAYS_CLOCKED = ((0x0800_0000, 0x0810_0000), (0x2000_0000, 0x2800_0000))
"""RAM with clocks on after reset: PSoC 6 has it at 0x08000000; the STM32H7's memories from 0x30000000 need a clock."""

_FLASH_OF = {"nrf52832_xxab": (0, 256 << 10)}
"""The nRF52832 with 32 KiB of RAM has 256 KiB of flash (Product Specification, Memory); probe-rs says 1 MiB."""
_RT1060_OCRAM2 = (0x2020_0000, 512 << 10)
"""The memory that is RAM whatever the fuses of FlexRAM say (i.MX RT1060 Reference Manual, FlexRAM); probe-rs adds the
other 512 KiB to it."""


class _Loader(yaml.SafeLoader):
    """YAML with the tags of Rust's enumerations, kept as the key ``kind``."""


def _tagged(loader: _Loader, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {**loader.construct_mapping(node, deep=True), "kind": tag}
    return None


_Loader.add_multi_constructor("!", _tagged)


_KIB = 1024
_M4_ADI = "cortex-m4", (0x1000_0000, 512 * _KIB), (0x2000_0000, 128 * _KIB)


@dataclass(frozen=True, order=True)
class Row:
    """Core and memories; origins and sizes in bytes, a size of 0 for none."""

    cpu: str
    flash: tuple[int, int]
    ram: tuple[int, int]


OTHERS = {
    "max32655": Row(*_M4_ADI),
    "max78000": Row(*_M4_ADI),
    "max78002": Row("cortex-m4", (0x1000_0000, 2560 * _KIB), (0x2000_0000, 384 * _KIB)),
}
"""Parts that probe-rs does not have: the nodes flash0 and sram0 to sram7 in dts/arm/adi/max32 of Zephyr (Apache-2.0),
of max32xxx.dtsi 09ab7886, max32655.dtsi 14626e75, max78000.dtsi 0d020be3 and max78002.dtsi 0225b4db."""


def parts(folder: Path) -> Iterator[tuple[str, Row, str]]:
    """Yield name, row and probe-rs' name of every part in the target files of ``folder``."""
    for path in sorted(folder.glob("*.y*ml")):
        for variant in yaml.load(path.read_text(encoding="utf-8"), _Loader)["variants"]:  # noqa: S506 - a SafeLoader
            name = variant["name"].lower().split("_")[0]
            cpu = next((cpu for start, cpu in SERIES.items() if re.match(start, name)), None)
            if cpu and not re.search(r"_(network|apponly|selfdebug|ns|riscv)", variant["name"].lower()):
                memories = variant["memory_map"]
                flash = _FLASH_OF.get(variant["name"].lower()) or _flash(name, memories)
                for each in _NAMES.get(name, (name,)):
                    yield each, Row(cpu, flash, _ram(name, memories)), variant["name"]


def _flash(name: str, memories: list[dict[str, Any]]) -> tuple[int, int]:
    if _BOOTED_BY_MAKER.match(name) or _SETTINGS_IN_FLASH.match(name):
        return (0, 0)
    bootable = [each for each in memories if each["kind"] == "Nvm" and (each.get("access") or {}).get("boot")]
    return _joined(bootable)[0] if bootable else (0, 0)


def _ram(name: str, memories: list[dict[str, Any]]) -> tuple[int, int]:
    if name.startswith("mimxrt106"):
        return _RT1060_OCRAM2
    ram = [
        each
        for each in memories
        if each["kind"] == "Ram" and any(first <= each["range"]["start"] < end for first, end in _ALWAYS_CLOCKED)
    ]
    return max(_joined(ram), key=lambda region: (region[1], -region[0]), default=(0, 0))


def _joined(memories: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the contiguous regions of ``memories``, by address: pairs of origin and size."""
    regions: list[tuple[int, int]] = []
    for start, end in sorted((each["range"]["start"], each["range"]["end"]) for each in memories):
        if regions and start <= sum(regions[-1]):
            origin, size = regions.pop()
            regions.append((origin, max(size, end - origin)))
        else:
            regions.append((start, end - start))
    return regions


def grouped(found: Iterator[tuple[str, Row, str]]) -> dict[str, tuple[Row, list[str]]]:
    """Return rows and chips by name or pattern; parts of several sizes that one pattern matches keep their names."""
    by_pattern: dict[str, dict[str, Row]] = defaultdict(dict)
    chips: dict[str, list[str]] = defaultdict(list)
    for name, row, chip in found:
        chips[name].append(chip)
        # STM32F407VG: line F407, V for 100 pins, G for 1 MiB
        stm32 = re.fullmatch(r"(stm32\w{4})[a-z](\w)(.*)", name)
        members = by_pattern[f"{stm32[1]}?{stm32[2]}" if stm32 else _short(name)]
        members[name] = _smaller(members.get(name, row), row)
    rows: dict[str, tuple[Row, list[str]]] = {}
    for pattern, members in by_pattern.items():
        if len(set(members.values())) == 1:
            rows[pattern] = next(iter(members.values())), [chip for name in members for chip in chips[name]]
        else:
            rows.update({name: (row, chips[name]) for name, row in members.items()})
    return dict(sorted(rows.items()))


def pyocd_types(checkout: Path) -> list[str]:
    """Return the target types that pyOCD contains: the keys of BUILTIN_TARGETS."""
    tree = ast.parse((checkout / "pyocd/target/builtin/__init__.py").read_text(encoding="utf-8"))
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "BUILTIN_TARGETS"
    )
    assert isinstance(table, ast.Dict)
    return [str(ast.literal_eval(key)) for key in table.keys if key]


def pyocd_type(part: str, chips: list[str], types: list[str]) -> str:
    """Return the type of ``types`` for ``part``, in which ``x`` stands for any letter; empty without one."""
    same = [chip.lower() for chip in chips if chip.lower() in types]
    if part.startswith(_PYOCD_FAMILIES):
        return next(family for family in _PYOCD_FAMILIES if part.startswith(family))
    name = part.replace("?", "x")
    return next((each for each in types if each in same or fnmatchcase(name, each.replace("x", "?"))), "")


_PYOCD_FAMILIES = ("nrf54lm20a", "nrf54l", "nrf91", "nrf51")
"""Types that are the beginning of the names of several parts."""


def _smaller(one: Row, other: Row) -> Row:
    """Return what both parts have; revisions of an nRF52832 differ in their sizes, not in their names."""
    smaller_flash = min(one.flash, other.flash, key=lambda region: region[1])
    return Row(one.cpu, smaller_flash, min(one.ram, other.ram, key=lambda region: region[1]))


def _short(name: str) -> str:
    """Return ``name`` without package and temperature range."""
    for whole, short in ((r"(efr32\w+?f\d+).*", r"\1"), (r"(cy8c\w{4}).*", r"\1"), (r"(ats\w+?\d\d[a-z]).*", r"\1")):
        name = re.sub(f"^{whole}$", short, name)
    return name


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Write the table."""
    probe_rs, pyocd = Path(sys.argv[1]), Path(sys.argv[2])
    types = pyocd_types(pyocd)
    rows = {name: found for name, found in grouped(parts(probe_rs / "probe-rs/targets")).items() if found[0].ram[1]}
    rows |= {name: (row, []) for name, row in OTHERS.items()}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# Written by scripts/parts.py from probe-rs {_commit(probe_rs)}, probe-rs/targets,\n")
        file.write(f"# and pyOCD {_commit(pyocd)}, pyocd/target/builtin.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["part", "cpu", "flash", "flash size", "ram", "ram size", "chips", "pyocd"])
        for name, (row, chips) in sorted(rows.items()):
            flash = [hex(row.flash[0]), row.flash[1]] if row.flash[1] else ["", ""]
            ram = [hex(row.ram[0]), row.ram[1]]
            names = [" ".join(dict.fromkeys(chips)), pyocd_type(name, chips, types)]
            writer.writerow([name, row.cpu, *flash, *ram, *names])


if __name__ == "__main__":
    main()
