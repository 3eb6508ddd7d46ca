"""Use of memories by images and models, and budgets of memories, on images that GNU ld links with several scripts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs.budgets import TargetBudgets, read_budgets
from mlfbuild.project import Budget, TargetMemory
from mlfbuild.report.link.checks import link_faults
from mlfbuild.report.sizes.images import any_image_sizes
from mlfbuild.report.sizes.memories import MemoryUse
from mlfbuild.usecases.report import report_link, report_text

KIB = 1024
MAIN = ".bss.noinit.tvm"
SOURCE = """
__attribute__((section(".mlf_dtcm"))) char fast[3000];
__attribute__((section(".bss.noinit.tvm"))) char arena[500];
int copied = 7;
const char weights[2000] = {1};
int mlf_kws_run(void) { return fast[0] + arena[0] + copied + weights[0]; }
"""
FIRMWARE = """
int mlf_kws_run(void);
__attribute__((section(".fast"))) char other[100];
int main(void) { return mlf_kws_run() + other[0]; }
"""
REGIONS = {"FLASH": (0x08000000, 64), "RAM": (0x20000000, 32), "DTCM": (0x30000000, 16)}
SECTIONS = """
SECTIONS {
  .text : { *(.text*) *(.rodata*) } > FLASH
  .data : { *(.data*) } > RAM AT> FLASH
  .bss (NOLOAD) : { *(.bss*) } > RAM
  .fast (NOLOAD) : { *(.fast) } > %(fast)s
  .mlf_dtcm (NOLOAD) : { *(.mlf_dtcm) } > %(fast)s
}
"""
Linker = Callable[..., Path]


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Linker:
    """Return a function that links the model and the firmware with regions, the fast sections in ``fast``."""
    gcc = tool("arm-none-eabi-gcc")
    folder = tmp_path_factory.mktemp("memories")

    def linked(name: str, fast: str = "DTCM", regions: dict[str, tuple[int, int]] = REGIONS) -> Path:
        sources = {"kws_lib0.c": SOURCE, "main.c": FIRMWARE}
        for file, text in sources.items():
            (folder / file).write_text(text)
        lines = "".join(f"  {key} (rwx) : ORIGIN = {at:#x}, LENGTH = {size}K\n" for key, (at, size) in regions.items())
        script = folder / f"{name}.ld"
        script.write_text(f"MEMORY {{\n{lines}}}\n{SECTIONS % {'fast': fast}}")
        image = folder / f"{name}.elf"
        for file in sources:
            compiled = folder / file.replace(".c", ".o")
            subprocess.run([gcc, "-mcpu=cortex-m4", "-Os", "-c", folder / file, "-o", compiled], check=True)
        objects = [folder / "main.o", folder / "kws_lib0.o"]
        options = ["-nostdlib", "-Wl,-emain", f"-T{script}", f"-Wl,-Map={image}.map"]
        subprocess.run([gcc, "-mcpu=cortex-m4", *options, *objects, "-o", image], check=True)
        return image

    return linked


def memory(name: str, origin: int | None, size: int = 16 * KIB, section: str = "", region: str = "") -> TargetMemory:
    main = name in {"ram", "sram"}
    section = section or (MAIN if main else f".mlf_{name}")
    return TargetMemory(name, size, origin, section, region or name.upper(), main=main)


def uses(image: Path, *memories: TargetMemory) -> dict[str, MemoryUse]:
    return {use.name: use for use in any_image_sizes(image, memories=memories).memory_uses}


@pytest.fixture(scope="module")
def image(link: Linker) -> Path:
    return link("usual")


def test_bytes_by_memory_and_model(image: Path) -> None:
    found = uses(image, memory("dtcm", 0x30000000), memory("sram", 0x20000000), memory("flash2", 0x08000000, 64 * KIB))
    assert (found["dtcm"].used, found["dtcm"].models) == (3100, {"kws": 3000})
    # Four bytes of .data, aligned variables of 500 bytes.
    assert (found["sram"].used, found["sram"].models) == (504, {"kws": 504})
    # Constants, code, and the initial value of the variable, which is counted at both addresses.
    assert found["flash2"].models["kws"] >= 2000 + 4
    assert found["flash2"].used == any_image_sizes(image).image.flash


@pytest.mark.parametrize(
    "found",
    [
        memory("dtcm", None),
        memory("tcm", None, section=".mlf_dtcm", region="DTCM"),
        memory("tcm", None, section=".mlf_dtcm", region="TCM"),
    ],
    ids=["name", "region", "section"],
)
def test_without_origin_the_map_says_where_a_memory_is(image: Path, found: TargetMemory) -> None:
    (use,) = uses(image, found).values()
    assert (use.used, use.problem) == (3100, "")


def test_the_main_ram_is_where_its_arenas_are(link: Linker) -> None:
    image = link("named", regions={"FLASH": (0, 64), "RAM": (0x24000000, 64), "DTCM": (0x20000000, 16)})
    assert uses(image, memory("sram", None))["sram"].used == 504


def test_both_addresses_of_a_memory_count(link: Linker) -> None:
    aliased = link("aliased", "SRAM2", {**REGIONS, "SRAM2": (0x20040000, 16)})
    sram2 = memory("sram2", 0x10000000, section=".mlf_dtcm")
    assert uses(aliased, sram2)["sram2"].used == 3100


def test_an_unknown_place_is_no_use_of_0(image: Path, link: Linker) -> None:
    found = uses(image, memory("tcm", 0x10000000, section=".mlf_dtcm"), memory("psram", None))
    assert "0x30000064, outside of 0x10000000 to 0x10003fff" in found["tcm"].problem
    assert "no region PSRAM and no section .mlf_psram" in found["psram"].problem
    strayed = any_image_sizes(link("in ram", "RAM"), memories=(memory("dtcm", 0x10000000, region="CCM"),))
    (fault,) = [each for each in link_faults(strayed).faults if each.code == "arena-elsewhere"]
    assert fault.place == "in ram.elf: memory dtcm"


@pytest.mark.parametrize(("size", "codes"), [(3100, []), (3099, ["memory-overflows"])])
def test_an_image_takes_at_most_the_size_of_a_memory(image: Path, size: int, codes: list[str]) -> None:
    faults = link_faults(any_image_sizes(image, memories=(memory("dtcm", 0x30000000, size),))).faults
    assert [fault.code for fault in faults if fault.code.startswith("memory")] == codes


def test_a_script_without_regions(link: Linker) -> None:
    alone = link("alone")
    text = alone.with_name("alone.elf.map").read_text()
    begin, end = text.index("\nMemory Configuration\n"), text.index("\nLinker script and memory map\n")
    alone.with_name("alone.elf.map").write_text(text[:begin] + text[end:])
    assert uses(alone, memory("dtcm", None))["dtcm"].used == 3000


def budgets(path: Path, model: Budget, image: Budget, *memories: TargetMemory) -> TargetBudgets:
    """Return budgets as a tree has them: written and read again."""
    path.write_text(TargetBudgets("m4", {"kws": model}, {"usual": image}, memories=memories).to_json())
    return read_budgets(path)


def test_budgets_of_a_link(image: Path, tmp_path: Path) -> None:
    dtcm, sram = memory("dtcm", 0x30000000), memory("sram", None, region="RAM")
    kept = budgets(tmp_path / "a", Budget(memories={"dtcm": 3000}), Budget(memories={"sram": 504}), dtcm, sram)
    assert kept.memories == (dtcm, sram)
    found = report_link(image, None, kept)
    assert (found.errors, found.unchecked) == ([], ())
    over = budgets(tmp_path / "b", Budget(memories={"dtcm": 2999}), Budget(memories={"sram": 503}), dtcm, sram)
    error = report_link(image, None, over).over_budget
    assert error is not None and error.exit_code == 1
    first, second = error.problems
    assert (first.code, first.place) == ("memory-over-budget", "usual.elf for m4: model kws")
    assert "3,000 bytes (2.9 KiB) of dtcm, 1 byte over" in first.reason
    assert (second.code, second.place) == ("memory-over-budget", "usual.elf for m4: the image")
    assert ".bss 500, .data 4" in second.hint


def test_a_budget_that_cannot_be_checked_fails(image: Path, tmp_path: Path) -> None:
    unknown = budgets(tmp_path / "a", Budget(memories={"ccm": 64 * KIB}), Budget(), memory("ccm", None))
    error = report_link(image, None, unknown).over_budget
    assert error is not None and [each.code for each in error.problems] == ["memory-use-not-known"]


def test_text_of_a_report(image: Path) -> None:
    limits = {"kws": Budget(memories={"dtcm": 4000})}
    memories = (memory("dtcm", 0x30000000), memory("psram", None))
    text = report_text([any_image_sizes(image, budgets=limits, memories=memories)])
    for line in ("dtcm      3,100             16,384 (19 %)", "  model kws: 3,000 of 4,000 bytes of dtcm (75 %)"):
        assert line in text.splitlines()
    assert "  psram: its addresses are not known" in text
