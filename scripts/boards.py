"""Write ``mlfbuild/targets/data/development_boards.csv``: boards that people own, their part and their debugger.

    for each of PLATFORMS: git clone https://github.com/platformio/platform-NAME
    git clone https://github.com/pyocd/pyOCD
    python scripts/boards.py FOLDER_OF_THE_CLONES

The board files of PlatformIO (Apache-2.0) have the part, the debugger on the board, and the names that OpenOCD and
J-Link use. The table of boards in pyOCD (Apache-2.0) has its target types. ``OTHERS`` are boards that PlatformIO does
not have, from the board folders of Zephyr (Apache-2.0). Only facts are taken.

``server`` is the GDB server that drives the debugger on the board; boards without a debugger have none. ``usb`` is a
regular expression for the USB vendor and product of the debugger's serial port, as pyserial's list of ports has them.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from mlfbuild.targets import CPUS, DevelopmentBoard, part_called

TABLE = Path(__file__).resolve().parents[1] / "mlfbuild/targets/data/development_boards.csv"
PLATFORMS = {
    "ststm32": r"nucleo_|disco_|(blue|black)pill_|portenta_h7_m7|giga_r1_m7|nicla_vision$|opta$|adafruit_|sparkfun_",
    "nordicnrf52": r"adafruit_|bbcmicrobit|nrf52|nano33ble|nicla_sense|thingy_52|particle_",
    "raspberrypi": "",
    "atmelsam": r"adafruit_|mkr|nano_33|zero$|sparkfun_|seeed_(xiao|wio)|sam[dr]21_xpro",
    "teensy": "teensy(4|mm)",
    "renesas-ra": "",
    "siliconlabsefm32": "",
    "nxpimxrt": "",
}
"""Platforms of PlatformIO, with the beginnings of the names of the boards to take; all boards if empty."""
NAMES = {
    "nrf52_dk": "nrf52dk",
    "nrf52833_dk": "nrf52833dk",
    "nrf52840_dk": "nrf52840dk",
    "nano33ble": "nano-33-ble",
    "nanorp2040connect": "nano-rp2040-connect",
    "bbcmicrobit_v2": "microbit-v2",
    "portenta_h7_m7": "portenta-h7",
    "giga_r1_m7": "giga-r1",
    "mkr1000USB": "mkr1000",
    "teensy40": "teensy-4.0",
    "teensy41": "teensy-4.1",
    "teensymm": "teensy-micromod",
    "tb_sense_12": "thunderboard-sense-2",
    "zero": "arduino-zero",
}
"""Names of PlatformIO that are not those of the makers with ``_`` for ``-``."""
OPENOCD = {"stm32wb55": "stm32wbx", "nrf52": "nrf52"}
"""Targets of OpenOCD by the beginning of the part, if PlatformIO has none."""
USB = {
    "stlink": "0483:37(4[BEF]|5[234])",
    "jlink": "1366:",
    "cmsis-dap": "(0D28:0204|04B4:F1[45].|2341:1002|03EB:(2111|2157))",
}
"""Serial ports by debugger: ST-LINK V2-1 and V3 (probe-rs, usb_interface.rs; V2 has none), SEGGER's vendor, and
DAPLink, KitProg3, and the debuggers of Arduino and Microchip (udev rules of pyOCD; PlatformIO)."""
_ST = "boards/st/{}/board.cmake"
OTHERS = (
    *(
        ("stlink", f"nucleo-{name}".replace("_", "-"), f"stm32{name[:6]}", _ST.format(f"nucleo_{name}"), commit)
        for name, commit in (
            ("c031c6", "a27ef2b3"), ("c071rb", "4d0b43fc"), ("c092rc", "e0513a26"), ("h503rb", "684bc3b5"),
            ("h533re", "c561fe3e"), ("h755zi_q", "3de45ee8"), ("h7a3zi_q", "be05bb34"), ("l4a6zg", "54a29be3"),
            ("u031r8", "bb8596e0"), ("u083rc", "bb8596e0"), ("u385rg_q", "06758ff2"), ("u545re_q", "a9d1b38c"),
            ("u5a5zj_q", "2b08ff95"), ("wb55rg", "009699f2"),
        )
    ),
    *(
        ("stlink", f"nucleo-{name}", f"stm32{name}", _ST.format(f"nucleo_{name}"), commit)
        for name, commit in (("wba52cg", "8d6425a6"), ("wba55cg", "e0513a26"), ("wba65ri", "81eda93b"))
    ),
    ("stlink", "stm32h573i-dk", "stm32h573ii", _ST.format("stm32h573i_dk"), "0071cd3e"),
    ("", "pico2", "rp2350", "boards/raspberrypi/rpi_pico2/board.cmake", "02f9c171"),
    ("", "pico-w", "rp2040", "boards/raspberrypi/rpi_pico/board.cmake", "0202bd86"),
    ("", "pico2-w", "rp2350", "boards/raspberrypi/rpi_pico2/board.cmake", "02f9c171"),
    ("jlink", "nrf5340dk", "nrf5340", "boards/nordic/nrf5340dk/board.cmake", "4b60c969"),
    ("jlink", "nrf54l15dk", "nrf54l15", "boards/nordic/nrf54l15dk/board.cmake", "01b8849a"),
    *(
        ("jlink", f"ek-{ra}", f"r7fa{ra[2:]}{size}", f"boards/renesas/ek_{ra}/board.cmake", commit)
        for ra, size, commit in (
            ("ra4m1", "ab", "82597c3e"), ("ra4m2", "ad", "64c7ad75"), ("ra4m3", "af", "784695a4"),
            ("ra6m1", "ad", "06758ff2"), ("ra6m2", "af", "7ed7460d"), ("ra6m3", "ah", "07d5b2e3"),
            ("ra6m4", "af", "555afe21"), ("ra6m5", "bh", "3f0cd3e1"), ("ra8m1", "ah", "50fb4564"),
            ("ra8d1", "bh", "555afe21"),
        )
    ),
    *(
        ("cmsis-dap", name.replace("_", "-"), mcu, f"boards/infineon/{name}/board.yml", commit)
        for name, mcu, commit in (
            ("cy8cproto_062_4343w", "cy8c624abzi-s2d44", "163fa67e"),
            ("cy8ckit_062s2_ai", "cy8c624abzi-s2d44", "0202bd86"),
            ("cy8cproto_062s3_4343w", "cy8c6245lqi-s3d72", "9fd30131"),
        )
    ),
    ("jlink", "xg24-dk2601b", "efr32mg24b310f1536", "boards/silabs/dev_kits/xg24_dk2601b/board.yml", "684bc3b5"),
    ("jlink", "xg24-ek2703a", "efr32mg24b310f1536", "boards/silabs/dev_kits/xg24_ek2703a/board.yml", "20799db2"),
    *(
        ("cmsis-dap", f"{part}{kind}", part, f"boards/adi/{part}{kind}/board.cmake", commit)
        for part, kind, commit in (
            ("max32655", "fthr", "4d0b43fc"), ("max32666", "fthr", "7c341bcf"), ("max32690", "fthr", "f8c7d6b0"),
            ("max78000", "fthr", "0d020be3"), ("max78000", "evkit", "b339824a"), ("max78002", "evkit", "2a0aea96"),
        )
    ),
)  # fmt: skip
"""Debugger, name, part, and the file in Zephyr with its commit."""
_OPENOCD_OF_OTHERS = (
    ("stm32l4", "stm32l4x"), ("stm32h7", "stm32h7x"), ("stm32u5", "stm32u5x"), ("stm32wb5", "stm32wbx"),
    ("rp2040", "rp2040"), ("rp2350", "rp2350"), ("max7800", "{}"), ("max326", "{}"),
)  # fmt: skip
_JLINK_OF_OTHERS = {
    "nrf5340": "nrf5340_xxaa_app", "nrf54l15": "nRF54L15_M33", "rp2040": "RP2040_M0_0", "rp2350": "RP2350_M33_0",
    "efr32mg24b310f1536": "EFR32MG24BxxxF1536",
}  # fmt: skip


def of_platformio(folder: Path, types: dict[str, str]) -> Iterator[DevelopmentBoard]:
    """Yield the boards of the clones in ``folder``; ``types`` are pyOCD's target types by board."""
    for platform, beginning in PLATFORMS.items():
        checkout = folder / f"platform-{platform}"
        source = f"platformio/platform-{platform} {_commit(checkout)}"
        for path in sorted((checkout / "boards").glob("*.json")):
            keys = json.loads(path.read_text(encoding="utf-8"))
            mcu = _part(keys)
            if re.match(beginning, path.stem) and mcu and not path.stem.endswith(("_adafruit", "_128", "_128k")):
                name = NAMES.get(path.stem, path.stem.replace("_", "-")).lower()
                yield _row(name, keys["name"], mcu, keys.get("debug", {}), source, types)


def _part(keys: dict[str, Any]) -> str:
    """Return the part of a board as the table of parts has it; empty if it has not."""
    mcu = keys["build"]["mcu"].lower()
    mcu = re.sub("^sam", "atsam", mcu).replace("imxrt", "mimxrt").replace("mmimxrt", "mimxrt")
    if mcu == "ra4m1":
        mcu = keys["debug"]["jlink_device"].lower()
    part = part_called(mcu)
    core = CPUS[part.cpu].core if part else ""
    return mcu if part and core == keys["build"]["cpu"] else ""


def _row(
    name: str, title: str, mcu: str, debug: dict[str, Any], source: str, types: dict[str, str]
) -> DevelopmentBoard:
    tools = debug.get("onboard_tools") or (["stlink"] if name.startswith(("nucleo", "disco")) else [])
    debugger = next((each for each in ("jlink", "stlink", "cmsis-dap") if each in tools), "")
    openocd = debug.get("openocd_target", "").removesuffix(".cfg")
    openocd = openocd or next((target for start, target in OPENOCD.items() if mcu.startswith(start)), "")
    pyocd = _pyocd(types.get(_plain(name), ""), mcu)
    return DevelopmentBoard(
        name, title, mcu, debugger, _server(debugger, openocd, mcu), openocd, debug.get("jlink_device", ""),
        pyocd, USB.get(debugger, ""), source,
    )  # fmt: skip


def of_zephyr(types: dict[str, str]) -> Iterator[DevelopmentBoard]:
    """Yield the boards in ``OTHERS``."""
    for debugger, name, mcu, path, commit in OTHERS:
        openocd = next((target for start, target in _OPENOCD_OF_OTHERS if mcu.startswith(start)), "").format(mcu)
        jlink = _JLINK_OF_OTHERS.get(mcu, mcu.upper() if mcu.startswith(("r7fa", "max326")) else "")
        pyocd = _pyocd(types.get(_plain(name), ""), mcu)
        yield DevelopmentBoard(
            name, "", mcu, debugger, _server(debugger, openocd, mcu), openocd, jlink, pyocd,
            USB.get(debugger, ""), f"zephyrproject-rtos/zephyr {commit} {path}",
        )  # fmt: skip


def _server(debugger: str, openocd: str, mcu: str) -> str:
    """Return the GDB server for a debugger: SEGGER's own for J-Link, otherwise the first one that knows the part."""
    part = part_called(mcu)
    assert part is not None, mcu
    if debugger in {"", "jlink"}:
        return debugger
    return "openocd" if openocd else "pyocd" if part.pyocd else "probe-rs"


def pyocd_types(checkout: Path) -> dict[str, str]:
    """Return pyOCD's target types by the board's name without punctuation: the table BOARD_ID_TO_INFO."""
    tree = ast.parse((checkout / "pyocd/board/board_ids.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    found = {}
    for call in calls:
        name, target = (ast.literal_eval(each) for each in call.args[:2])
        if target:
            found[_plain(name)] = target
    return found


def _pyocd(target: str, mcu: str) -> str:
    """Return ``target`` unless it is for another part, as some rows of pyOCD's table are."""
    fits = all(one in (other, "x") for one, other in zip(target.lower(), mcu, strict=False))
    return target.lower() if fits or not mcu.startswith("stm32") else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()[:8]


def main() -> None:
    """Write the table."""
    folder = Path(sys.argv[1])
    types = pyocd_types(folder / "pyOCD")
    by_name = {row.board: row for row in (*of_platformio(folder, types), *of_zephyr(types))}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# Written by scripts/boards.py; target types of pyOCD {_commit(folder / 'pyOCD')}.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(DevelopmentBoard))
        writer.writerows(astuple(row) for _, row in sorted(by_name.items()))


if __name__ == "__main__":
    main()
