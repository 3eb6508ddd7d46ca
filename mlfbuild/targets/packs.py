"""Core and memories of a device in a CMSIS-Pack: ``mcu: {pack: vendor.pack, device: STM32F407VGT6}``.

A pack is a ZIP archive with one description of devices, a file ``.pdsc`` (Open-CMSIS-Pack specification, elements
``devices``, ``processor`` and ``memory``). Families, subfamilies and devices have both elements; the innermost wins. Of
the memories, the one that the device starts from is its flash, and the largest default memory that can be written its
RAM. Packs are files of others: sizes are limited, and XML with declarations of entities is refused.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from mlfbuild.core import Mistake, in_quotes, listed
from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.part_keys import DeviceMemoryKeys, RegionKeys
from mlfbuild.targets.parts import KnownPart

_LARGEST_DESCRIPTION = 64 << 20
_NESTED = ("family", "subFamily", "device", "variant")
_CORES = re.compile(r"Cortex-M(\d+)(\+?)")
_SINGLE, _NONE = ("1", "FPU", "SP_FPU"), ("", "0", "NO_FPU")


def pack_device(pack: Path, device: str) -> KnownPart:
    """Return core and memories of ``device`` in the CMSIS-Pack ``pack``; case does not matter.

    Raises ``Mistake``, whose reason begins with the name of the file.
    """
    try:
        state = pack.stat()
    except OSError as error:
        raise Mistake("pack-invalid", reason=f"{pack.name}: {error.strerror}", hint="correct its path") from None
    devices = _devices(pack, state.st_mtime_ns)
    found = next((part for name, part in devices.items() if name.lower() == device.lower()), None)
    if found is None:
        near = [name for name in devices if name.lower().startswith(device.lower()[:9])]
        hint = f"use one of {listed(near or list(devices))}"
        reason = f"{pack.name} has no device {in_quotes(device)}"
        raise Mistake("unknown-mcu", reason=reason, hint=hint)
    return _part(pack, device, found)


@cache
def _devices(pack: Path, _changed: int) -> Mapping[str, list[ET.Element]]:
    """Return the devices of ``pack`` by name, each with the elements that it inherits, the outermost first."""
    try:
        with zipfile.ZipFile(pack) as archive:
            (description,) = [item for item in archive.infolist() if item.filename.lower().endswith(".pdsc")]
            if description.file_size > _LARGEST_DESCRIPTION:
                raise ValueError("its description is too large")
            with archive.open(description) as file:
                # One byte more than allowed: the archive states its own sizes.
                data = file.read(_LARGEST_DESCRIPTION + 1)
        if len(data) > _LARGEST_DESCRIPTION or b"<!ENTITY" in data or b"<!DOCTYPE" in data:
            raise ValueError("its description is too large, or declares entities")
        root = ET.fromstring(data)  # noqa: S314 - entities are refused above
    except (
        OSError,
        ValueError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        zlib.error,
        ET.ParseError,
    ) as error:
        reason = f"{pack.name} is not a CMSIS-Pack: {str(error).partition(chr(10))[0]}"
        raise Mistake("pack-invalid", reason=reason, hint="download it again from its maker") from None
    return dict(_inner(root.find("devices"), []))


def _inner(element: ET.Element | None, outer: list[ET.Element]) -> Iterator[tuple[str, list[ET.Element]]]:
    for each in () if element is None else element:
        if each.tag in _NESTED:
            around = [*outer, each]
            name = each.get("Dvariant") or (each.get("Dname") if each.tag == "device" else None)
            if name:
                yield name, around
            yield from _inner(each, around)


def _part(pack: Path, device: str, around: list[ET.Element]) -> KnownPart:
    processor: dict[str, str] = {}
    memories: dict[str, ET.Element] = {}
    for element in around:
        for each in element.findall("processor")[:1]:
            processor |= each.attrib
        memories |= {each.get("name") or each.get("id") or "": each for each in element.findall("memory")}
    place = f"{pack.name}: {device}"
    cpu = _cpu(processor)
    if cpu is None:
        words = f"{processor.get('Dcore', 'no core')}, Dfpu {processor.get('Dfpu', 'missing')}"
        reason = f"{place} has a core that mlfbuild does not know: {words}"
        raise Mistake("unknown-cpu", reason=reason, hint="write cpu and runner.memory instead of mcu")
    core = processor.get("Pname")
    own = [each for each in memories.values() if each.get("Pname") in {None, core}]
    try:
        flash = _largest([each for each in own if not _is_ram(each)])
        ram = _largest([each for each in own if _is_ram(each)])
    except ValueError as error:
        hint = "write cpu and runner.memory instead of mcu"
        raise Mistake("pack-invalid", reason=f"{place} has a memory without numbers: {error}", hint=hint) from None
    if ram is None:
        raise Mistake("device-memory-unknown", reason=f"{place} describes no RAM", hint="write cpu and runner.memory")
    return KnownPart(device.lower(), cpu, DeviceMemoryKeys(ram, flash))


def _cpu(processor: Mapping[str, str]) -> str | None:
    """Return the name in the table of CPUs for the attributes of a processor."""
    match = _CORES.fullmatch(processor.get("Dcore", ""))
    if match is None:
        return None
    name = f"cortex-m{match[1]}{'plus' if match[2] else ''}"
    fpu = processor.get("Dfpu", "")
    if name not in CPUS or (fpu in _NONE and "fpu" in CPUS[name].features):
        name = f"{name}+nofp"
    elif name == "cortex-m7" and fpu in _SINGLE:
        name = "cortex-m7+nofp.dp"
    return name if name in CPUS else None


def _is_ram(memory: ET.Element) -> bool:
    access = memory.get("access")
    return "w" in access if access else (memory.get("id") or "").startswith("IRAM")


def _largest(memories: list[ET.Element]) -> RegionKeys | None:
    """Return the memory to use: of those to start from, if there are any, or of the default ones, the largest."""
    for attribute in ("startup", "default", ""):
        chosen = [each for each in memories if not attribute or each.get(attribute) in {"1", "true"}]
        regions = [RegionKeys(int(each.get("start", "0"), 0), int(each.get("size", "0"), 0)) for each in chosen]
        if regions:
            return max(regions, key=lambda region: region.size)
    return None
