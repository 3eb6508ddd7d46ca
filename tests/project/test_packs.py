"""``mcu`` may be a device of a CMSIS-Pack, which gives core and memories; packs are files of others."""

import zipfile
from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.project import TargetSpec, json_schema, load_project
from support import schemas

PDSC = """<?xml version="1.0" encoding="UTF-8"?>
<package schemaVersion="1.7.36"><vendor>Keil</vendor><name>Our_DFP</name>
<devices><family Dfamily="Our family" Dvendor="Our:1">
<processor Dcore="Cortex-M4" DcoreVersion="r0p1" Dfpu="1" Dmpu="1" Dendian="Little-endian"/>
<memory id="IRAM2" start="0x10000000" size="0x40000"/>
<subFamily DsubFamily="Our1">
<device Dname="OUR101V"><memory name="Flash" access="rx" start="0x08000000" size="0x80000" startup="1" default="1"/>
<memory name="Boot" access="rx" start="0x1FFF0000" size="0x100000"/>
<memory name="SRAM" access="rwx" start="0x20000000" size="0x20000" default="1"/></device>
<device Dname="OUR102V"><processor Dcore="Cortex-M7" Dfpu="SP_FPU"/>
<memory id="IROM1" start="0x0" size="0x40000" startup="1" default="1"/>
<memory id="IRAM1" start="0x20000000" size="0x8000" default="1"/>
<variant Dvariant="OUR102VX"><processor Dcore="Cortex-M7" Dfpu="DP_FPU"/></variant></device>
<device Dname="OUR103"><processor Dcore="Cortex-M4" Dfpu="0"/></device>
<device Dname="OUR104"><processor Dcore="SC300"/></device>
<device Dname="OUR106"><processor Dcore="Cortex-M33" Dfpu="NO_FPU"/></device>
<device Dname="OUR105"><memory id="IRAM1" start="somewhere" size="0x8000" default="1"/></device>
</subFamily></family></devices></package>
"""


def write_pack(folder: Path, text: str = PDSC, name: str = "Keil.Our_DFP.pdsc") -> None:
    with zipfile.ZipFile(folder / "our.pack", "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr(name, text)


def target(folder: Path, keys: str) -> TargetSpec:
    file = folder / "mlfbuild.yml"
    file.write_text(f"mlfbuild: 1\ntargets:\n  t: {{{keys}}}\nmodels: {{a: {{source: a.tflite}}}}\n")
    return load_project(file).targets["t"]


def refused(folder: Path, keys: str) -> Diagnostic:
    with pytest.raises(ProjectFileError) as caught:
        target(folder, keys)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("device", "cpu", "flash", "ram"),
    [
        ("our101v", "cortex-m4", (0x08000000, 0x80000), (0x20000000, 0x20000)),
        ("OUR102V", "cortex-m7+nofp.dp", (0, 0x40000), (0x20000000, 0x8000)),
        ("OUR102VX", "cortex-m7", (0, 0x40000), (0x20000000, 0x8000)),
        ("OUR103", "cortex-m4+nofp", None, (0x10000000, 0x40000)),
        ("OUR106", "cortex-m33+nofp", None, (0x10000000, 0x40000)),
    ],
)
def test_pack_gives_core_and_memories(
    tmp_path: Path, device: str, cpu: str, flash: tuple[int, int] | None, ram: tuple[int, int]
) -> None:
    write_pack(tmp_path)
    found = target(tmp_path, f'mcu: {{pack: our.pack, device: {device}}}, runner: {{gdb: "localhost:3333"}}')
    assert found.runner is not None and found.runner.memory is not None
    memory = found.runner.memory
    assert found.cpu == cpu
    assert (memory.ram.origin, memory.ram.size) == ram
    assert ((memory.flash.origin, memory.flash.size) if memory.flash else None) == flash


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("mcu: {pack: our.pack, device: OUR109}", "unknown-mcu"),
        ("mcu: {pack: our.pack, device: OUR104}", "unknown-cpu"),
        ("mcu: {pack: our.pack, device: OUR105}", "pack-invalid"),
        ("mcu: {pack: other.pack, device: OUR101V}", "pack-invalid"),
        ("mcu: {pack: our.pack}", "pack-invalid"),
        ("mcu: {pack: our.pack, device: 5}", "pack-invalid"),
        ('mcu: "our.pack#OUR101V"', "pack-invalid"),
        ("mcu: {pack: our.pack, device: OUR101V}, cpu: cortex-m7", "mcu-of-another-cpu"),
    ],
)
def test_mistakes_are_reported_at_the_key(tmp_path: Path, keys: str, code: str) -> None:
    write_pack(tmp_path)
    problem = refused(tmp_path, keys)
    assert problem.code == code
    assert problem.place.endswith("mlfbuild.yml:3:12: targets.t.mcu")


def test_files_that_are_no_packs_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "aaaa">]><package><devices>&a;</devices></package>'
    for text, name in ((bomb, "a.pdsc"), ("<package>", "a.pdsc"), (PDSC, "a.xml")):
        write_pack(tmp_path, text, name)
        assert refused(tmp_path, "mcu: {pack: our.pack, device: OUR101V}").code == "pack-invalid"
        (tmp_path / "our.pack").unlink()
    (tmp_path / "our.pack").write_bytes(b"no ZIP archive")
    assert refused(tmp_path, "mcu: {pack: our.pack, device: OUR101V}").code == "pack-invalid"


def test_schema_knows_devices_of_packs() -> None:
    validator = schemas.validator(json_schema())
    project = {"mlfbuild": 1, "models": {"a": {"source": "a.tflite"}}}
    assert validator.is_valid({**project, "targets": {"t": {"mcu": {"pack": "a.pack", "device": "X"}}}})
    assert not validator.is_valid({**project, "targets": {"t": {"mcu": {"pack": "a.pack"}}}})
