"""Every byte of an image has one owner."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.sizes.linker_map import InputSection, read_map
from mlfbuild.report.sizes.owners import ARENA, CODE, DATA, STATE, TABLES, WEIGHTS, Owner, Sizes, models_in, sizes_of
from support.errors import raises


@pytest.fixture(scope="session")
def sizes(image: Path) -> Sizes:
    path = image.with_name("app.elf.map")
    return sizes_of(read_image(image), read_map(path), {"alpha": "first", "beta": "second"}, path)


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


def test_model_that_is_not_in_the_image_has_no_bytes(image: Path) -> None:
    path = image.with_name("app.elf.map")
    found = sizes_of(read_image(image), read_map(path), {"alpha": "alpha", "gamma": "gamma"}, path)
    assert [(owner.name, owner.flash > 0) for owner in found.models] == [("alpha", True), ("gamma", False)]
    assert "mlf_beta" in {owner.name for owner in found.others}


def test_required_library_is_a_separate_owner(image: Path) -> None:
    path = image.with_name("app.elf.map")
    placed = [
        replace(part, source=part.source.replace("libhelper.a", "libmlf_dep_cmsis-nn.a")) for part in read_map(path)
    ]
    assert set(models_in(placed)) == {"alpha", "beta"}
    found = sizes_of(read_image(image), placed, models_in(placed), path)
    assert next(owner for owner in found.others if owner.name == "cmsis-nn").of_kind(CODE) > 0


def test_a_map_of_another_image_is_refused(image: Path) -> None:
    placed = read_map(image.with_name("app.elf.map"))
    with raises(InputFileError, "map-of-another-image", "other.map"):
        sizes_of(read_image(image), placed[1:], {}, Path("other.map"))


@pytest.mark.parametrize("partition", ["balanced", "none"])
def test_a_map_after_lto_is_refused(tmp_path: Path, tool: Callable[[str], str], partition: str) -> None:
    gcc = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-Os", "-flto"]
    (tmp_path / "app.c").write_text("const char table[1000] = {1};\nint _start(int at) { return table[at]; }\n")
    options = ["-nostdlib", "-Wl,-Map=%.map", f"-flto-partition={partition}"]
    subprocess.run([*gcc, *options, "app.c", "-o", "app.elf"], cwd=tmp_path, check=True)
    placed = read_map(tmp_path / "app.elf.map")
    with raises(InputFileError, "map-after-lto", "app.map"):
        sizes_of(read_image(tmp_path / "app.elf"), placed, {}, Path("app.map"))


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

Linker script and memory map

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
 .text.none     0x08000040        0x0 main.o
 .ARM.exidx     0x08000040        0x8 linker stubs
 *(EXCLUDE_FILE(*boot.o) .late)
OUTPUT(app.elf elf32-littlearm)
.debug_info     0x00000000       0x10
 .debug_info    0x00000000       0x10 main.o
"""
    )
    assert read_map(path) == [
        InputSection(".text", ".text.short", 0x08000000, 16, "C:\\fw (1)\\main.o"),
        InputSection(
            ".text", ".text.a_name_longer_than_the_column", 0x08000010, 32, "lib/libmlf_kws.a(kws_lib0.c.obj)"
        ),
        InputSection(".text", "*fill*", 0x08000030, 4, "ff"),
        InputSection(".text", ".rodata.str1.4", 0x08000034, 12, "main.o"),
        InputSection(".text", ".ARM.exidx", 0x08000040, 8, "linker stubs"),
    ]
    kws = read_map(path)[1]
    assert (kws.archive, kws.member) == ("libmlf_kws.a", "kws_lib0.c.obj")
    assert read_map(path)[0].archive == ""
