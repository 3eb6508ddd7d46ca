"""Every byte of an image has one owner."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.project import Budget
from mlfbuild.report.budgets.check import size_excesses
from mlfbuild.report.budgets.limits import BudgetRecord
from mlfbuild.report.link.checks import models_without_code
from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.sizes.images import any_image_sizes
from mlfbuild.report.sizes.linker_map import InputSection, Region, read_map
from mlfbuild.report.sizes.owners import ARENA, CODE, DATA, STATE, TABLES, WEIGHTS, Owner, Sizes, models_in, sizes_of
from mlfbuild.report.text.sizes import sizes_text
from support.errors import raises

MERGED = """\
ENTRY(Reset_Handler)
MEMORY { FLASH (rx) : ORIGIN = 0x0, LENGTH = 1M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 1M }
SECTIONS {
  .text : { *(.text .text.* .rodata .rodata.*) } > FLASH
  .data : { *(.data .data.*) *(.bss .bss.*) } > RAM AT > FLASH
}
"""
"""A linker script that merges constants into ``.text``, and zeroed variables into ``.data``."""
IN_RAM = """\
ENTRY(Reset_Handler)
MEMORY { FLASH (rx) : ORIGIN = 0x0, LENGTH = 1M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 1M }
SECTIONS {
  .data : { *(.data .data.*) *(.rodata .rodata.*) *(.text.tvmgen_beta_run) } > RAM AT > FLASH
  .text : { *(.text .text.*) } > FLASH
  .bss : { *(.bss .bss.*) } > RAM
}
"""


@pytest.fixture(scope="session")
def sizes(image: Path) -> Sizes:
    path = image.with_name("app.elf.map")
    return sizes_of(read_image(image), read_map(path), {"alpha": "first", "beta": "second"})


def kinds(owner: Owner) -> dict[str, int]:
    return {kind: owner.of_kind(kind) for kind in (WEIGHTS, TABLES, ARENA, STATE, DATA)}


def test_sums_equal_those_of_the_image(image: Path, sizes: Sizes) -> None:
    found = read_image(image)
    owners = (*sizes.models, *sizes.others)
    assert sum(owner.flash for owner in owners) == found.flash
    assert sum(owner.ram for owner in owners) == found.ram


def test_models_by_kind_of_content(sizes: Sizes) -> None:
    first, second = sizes.models
    assert (first.name, second.name) == ("first", "second")
    assert kinds(first) == {WEIGHTS: 1000, TABLES: 256, ARENA: 2048, STATE: 64, DATA: 0}
    assert kinds(second) == {WEIGHTS: 300, TABLES: 40, ARENA: 512, STATE: 0, DATA: 0}
    assert first.flash == 1256 + first.of_kind(CODE) and first.ram == 2112
    assert [(piece.name, piece.size) for piece in first.largest(2)] == [
        ("tvmgen_alpha_conv2d_0_filter", 1000),
        ("tvmgen_alpha_softmax_1_table", 256),
    ]
    assert [piece.name for piece in first.largest(9, ram=True)] == ["tvmgen_alpha_workspace", "tvmgen_alpha_state"]


def test_other_owners(sizes: Sizes) -> None:
    others = {owner.name: owner for owner in sizes.others}
    assert others["stack"].ram == 4096 and others["stack"].flash == 0
    assert others["helper"].of_kind(CODE) > 0, "a library has its name"
    assert others["firmware"].of_kind(DATA) == 100, "initialised data is counted once by kind"
    assert (others["firmware"].flash - others["firmware"].of_kind(CODE), others["firmware"].ram) == (100, 100)


def relinked(image: Path, script: str, objects: str, folder: Path) -> Sizes:
    """Return the sizes of the objects of ``image`` if they are linked with another script."""
    (folder / "app.ld").write_text(script)
    options = [
        "-nostdlib", "-mcpu=cortex-m4", "-mthumb", "-T", folder / "app.ld", "-Wl,-Map=%.map", "-Wl,--gc-sections",
    ]  # fmt: skip
    command = ["arm-none-eabi-gcc", *options, *objects.split(), "-o", folder / "app.elf"]
    subprocess.run(command, cwd=image.parent, check=True)
    return any_image_sizes(folder / "app.elf").sizes


def test_a_script_that_merges_sections_changes_no_kind(image: Path, sizes: Sizes, tmp_path: Path) -> None:
    libraries = "main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a"
    merged = relinked(image, MERGED, libraries, tmp_path)
    for model, before in zip(merged.models, sizes.models, strict=True):
        assert kinds(model) == kinds(before)
        assert model.of_kind(CODE) == before.of_kind(CODE) > 0
        assert model.flash == before.flash + before.ram, "variables have initial values now"
    found = read_image(tmp_path / "app.elf")
    assert sum(owner.flash for owner in (*merged.models, *merged.others)) == found.flash


def test_weights_and_code_in_ram_keep_their_kind(image: Path, sizes: Sizes, tmp_path: Path) -> None:
    first, second = relinked(image, IN_RAM, "main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a", tmp_path).models
    assert kinds(first) == kinds(sizes.models[0])
    assert kinds(second) == kinds(sizes.models[1])
    assert first.ram == 1000 + 256 + 2048 + 64
    code = [piece for piece in second.pieces if piece.kind == CODE]
    assert [(piece.name, piece.flash, piece.ram) for piece in code] == [("tvmgen_beta_run", True, True)]


def test_models_that_are_linked_as_objects(image: Path, sizes: Sizes, tmp_path: Path) -> None:
    (tmp_path / "other_lib0.o").write_bytes((image.parent / "helper.c.obj").read_bytes())
    objects = f"main.c.obj alpha_lib0.c.obj beta_lib0.c.obj {tmp_path / 'other_lib0.o'}"
    found = relinked(image, MERGED, objects, tmp_path)
    assert [owner.name for owner in found.models] == ["alpha", "beta"], "other_lib0.o has no run function"
    assert [kinds(owner) for owner in found.models] == [kinds(owner) for owner in sizes.models]


def test_model_that_is_not_in_the_image_has_no_bytes(image: Path) -> None:
    path = image.with_name("app.elf.map")
    found = sizes_of(read_image(image), read_map(path), {"alpha": "alpha", "gamma": "gamma"})
    assert [(owner.name, owner.flash > 0) for owner in found.models] == [("alpha", True), ("gamma", False)]
    assert "mlf_beta" in {owner.name for owner in found.others}


def test_required_library_is_a_separate_owner(image: Path) -> None:
    path = image.with_name("app.elf.map")
    linked = read_map(path)
    renamed = [
        replace(part, source=part.source.replace("libhelper.a", "libmlf_dep_cmsis-nn.a")) for part in linked.sections
    ]
    assert set(models_in(read_image(image), replace(linked, sections=tuple(renamed)))) == {"alpha", "beta"}
    models = {"alpha": "alpha", "beta": "beta"}
    found = sizes_of(read_image(image), replace(linked, sections=tuple(renamed)), models)
    assert next(owner for owner in found.others if owner.name == "cmsis-nn").of_kind(CODE) > 0


def test_merged_strings_at_the_end_of_a_section_take_no_bytes(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """The map lists strings that were merged into others with the size that they had before."""
    (tmp_path / "app.c").write_text(
        "void print(const char *);\nvoid more(void);\nint _start(void) { print(STRING); more(); return 0; }\n"
    )
    (tmp_path / "more.c").write_text(
        "__attribute__((noipa)) void print(const char *s) { (void)s; }\nvoid more(void) { print(STRING); }\n"
    )
    (tmp_path / "app.ld").write_text("SECTIONS { .text : { *(.text*) } .rodata : { *(.rodata*) } }\n")
    gcc = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-O2", '-DSTRING="a string of 26 characters"']
    options = ["-nostdlib", "-T", "app.ld", "-Wl,-Map=%.map"]
    subprocess.run([*gcc, *options, "app.c", "more.c", "-o", "app.elf"], cwd=tmp_path, check=True)
    listed = (tmp_path / "app.elf.map").read_text().partition("\n.rodata ")[2].partition("\n\n")[0]
    assert listed.count("0x1a ") == 2, "the map lists the string twice"
    found = any_image_sizes(tmp_path / "app.elf")
    assert sum(owner.flash for owner in found.sizes.others) == found.image.flash


def test_numbers_that_the_script_writes_are_bytes_of_the_image(image: Path, tmp_path: Path) -> None:
    """NXP's scripts and CMSIS write tables for start-up code."""
    table = "LONG(LOADADDR(.data)) LONG(SIZEOF(.data)) QUAD(1) SHORT(2) BYTE(3) *(.text"
    script = MERGED.replace("*(.text", table, 1)
    found = relinked(image, script, "main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a", tmp_path)
    owners = (*found.models, *found.others)
    assert sum(owner.flash for owner in owners) == read_image(tmp_path / "app.elf").flash
    assert next(owner for owner in found.others if owner.name == "alignment").flash >= 19


def test_memory_that_the_script_reserves_for_the_heap(image: Path, tmp_path: Path) -> None:
    script = MERGED.replace("> RAM AT > FLASH", "> RAM AT > FLASH .heap (NOLOAD) : { . += 5000; } > RAM")
    found = relinked(image, script, "main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a", tmp_path)
    assert next(owner for owner in found.others if owner.name == "heap").ram == 5000


def test_a_map_of_another_image_is_refused(image: Path) -> None:
    linked = read_map(image.with_name("app.elf.map"))
    with raises(InputFileError, "map-of-another-image", "other.map"):
        sizes_of(read_image(image), replace(linked, path=Path("other.map"), sections=linked.sections[1:]), {})


@pytest.mark.parametrize("partition", ["balanced", "none"])
def test_after_lto_models_without_lto_are_known(
    image: Path, tmp_path: Path, tool: Callable[[str], str], partition: str
) -> None:
    gcc = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-Os"]
    for name, lto in (("alpha", "-fno-lto"), ("beta", "-flto"), ("gamma", "-fno-lto")):
        source = f"{name}_lib0.c"
        (tmp_path / source).write_text((image.parent / "alpha_lib0.c").read_text().replace("alpha", name))
        subprocess.run([*gcc, lto, "-c", source, "-o", f"{name}_lib0.o"], cwd=tmp_path, check=True)
        library = f"libmlf_{name}.a"
        subprocess.run(["arm-none-eabi-gcc-ar", "rcs", library, f"{name}_lib0.o"], cwd=tmp_path, check=True)
    (tmp_path / "app.c").write_text(
        "int tvmgen_alpha_run(int), tvmgen_beta_run(int);\nconst char table[1000] = {1};\n"
        "int _start(int at) { return table[at] + tvmgen_alpha_run(at) + tvmgen_beta_run(at); }\n"
    )
    options = ["-flto", "-nostdlib", "-Wl,-Map=%.map", f"-flto-partition={partition}"]
    objects = ["app.c", "libmlf_alpha.a", "libmlf_beta.a", "libmlf_gamma.a"]
    subprocess.run([*gcc, *options, *objects, "-o", "app.elf"], cwd=tmp_path, check=True)
    names = {"alpha": "alpha", "beta": "beta", "gamma": "gamma"}
    linked = read_image(tmp_path / "app.elf")
    found = sizes_of(linked, read_map(tmp_path / "app.elf.map"), names)
    assert sum(owner.flash for owner in (*found.models, *found.others)) == linked.flash
    assert [kinds(owner)[WEIGHTS] for owner in found.models] == [1000, 0, 0]
    assert found.mixed == ("beta",)
    assert next(owner for owner in found.others if owner.name == "link-time optimised code").flash > 2000
    limits = {name: Budget(flash=1) for name in ("alpha", "beta")}
    problems = {each.place: each.code for each in size_excesses(found, limits, BudgetRecord(Path()))}
    assert problems == {"model alpha": "size-over-budget", "model beta": "size-after-lto"}
    image_of_others = any_image_sizes(tmp_path / "app.elf", names=names)
    assert image_of_others.sizes.mixed == ("beta",), "its own operators and constants are in the image"
    assert "model beta: " not in sizes_text(image_of_others.sizes, limits, Budget())
    notes = list(models_without_code(image_of_others))
    assert [note.partition(":")[0] for note in notes] == ["model beta", "model gamma"]
    (tmp_path / "libmlf_beta.a").unlink()
    assert any_image_sizes(tmp_path / "app.elf").sizes.mixed == ("beta",), "the map alone says it"


def test_other_files_are_not_read_as_maps(tmp_path: Path) -> None:
    path = tmp_path / "app.map"
    path.write_text("             VMA              LMA     Size Align Out     In      Symbol\n")
    with raises(InputFileError, "not-a-gnu-ld-map", "app.map"):
        read_map(path)
    path.write_text("hello")
    with raises(InputFileError, "not-a-gnu-ld-map", "app.map"):
        read_map(path)
    with pytest.raises(InputFileError, match=r"none\.map"):
        read_map(tmp_path / "none.map")


def test_lines_of_a_map(tmp_path: Path) -> None:
    path = tmp_path / "app.map"
    path.write_text(
        """\
Discarded input sections

 .text.unused   0x00000000       0x20 main.o

Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x08000000         0x00100000         xr
RAM              0x20000000         0x00020000
*default*        0x00000000         0xffffffff

Linker script and memory map

LOAD main.o
START GROUP
LOAD lib/libmlf_kws.a
LOAD main.o

.text           0x08000000      0x130
 *(.text .text.*)
 .text.short    0x08000000       0x10 C:\\fw (1)\\main.o
                0x08000000                short
 .text.a_name_longer_than_the_column
                0x08000010       0x20 lib/libmlf_kws.a(kws_lib0.c.obj)
 *fill*         0x08000030        0x4 ff
 .rodata.str1.4
                0x08000034       0x0c main.o
                                 0x10 (size before relaxing)
 .rodata.str1.4
                0x0800003f       0x2f late.o
 *fill*         0x0800003f        0x1
 .text.none     0x08000040        0x0 main.o
 .ARM.exidx     0x08000040        0x8 linker stubs
 *(EXCLUDE_FILE(*boot.o) .late)

.bss            0x20000000        0x8
 main.o(.bss)
 .bss           0x20000000        0x8 main.o
OUTPUT(app.elf elf32-littlearm)
LOAD linker stubs

.bss.noinit.tvm
                0x20000010       0x80
 .bss.noinit.tvm
                0x20000010       0x80 lib/libmlf_kws.a(kws_lib0.c.obj)

.debug_info     0x00000000       0x10
 .debug_info    0x00000000       0x10 main.o

Cross Reference Table

Symbol                                            File
short                                             main.o
"""
    )
    found = read_map(path)
    kws = "lib/libmlf_kws.a(kws_lib0.c.obj)"
    assert found.sections == (
        InputSection(".text", ".text.short", 0x08000000, 16, "C:\\fw (1)\\main.o"),
        InputSection(".text", ".text.a_name_longer_than_the_column", 0x08000010, 32, kws),
        InputSection(".text", "*fill*", 0x08000030, 4, "ff"),
        InputSection(".text", ".rodata.str1.4", 0x08000034, 11, "main.o"),  # late.o's strings were merged into it
        InputSection(".text", "*fill*", 0x0800003F, 1, ""),
        InputSection(".text", ".ARM.exidx", 0x08000040, 8, "linker stubs"),
        InputSection(".bss", ".bss", 0x20000000, 8, "main.o"),
        InputSection(".bss.noinit.tvm", ".bss.noinit.tvm", 0x20000010, 128, kws, orphan=True),
    )
    assert found.regions == (
        Region("FLASH", 0x08000000, 0x00100000, read_only=True),
        Region("RAM", 0x20000000, 0x00020000),
    )
    assert found.files == ("main.o", "lib/libmlf_kws.a", "linker stubs")
    assert (found.sections[1].archive, found.sections[1].member) == ("libmlf_kws.a", "kws_lib0.c.obj")
    assert found.sections[0].archive == ""
