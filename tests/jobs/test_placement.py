"""The linker script of placed sections, with a firmware's own script and on every board that QEMU emulates."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.jobs.tree import tree_damage, write_target_tree
from mlfbuild.jobs.tree.placement import LINKER_SCRIPT, PLACEMENT_FOLDER, PlacedSection, placement_files
from mlfbuild.targets import BOARDS, CPUS, Board, toolchain_file
from mlfbuild.verify.emulator import run_elf

PARAMS = PlacedSection(".mlf_params", "QSPI", memory=False)
AXI = PlacedSection(".axi", "AXI_SRAM", memory=True)


PRODUCT = """\
MEMORY
{
  FLASH    (rx)  : ORIGIN = 0x08000000, LENGTH = 1M
  RAM      (rwx) : ORIGIN = 0x20000000, LENGTH = 128K
  QSPI     (r)   : ORIGIN = 0x90000000, LENGTH = 8M
  AXI_SRAM (rw)  : ORIGIN = 0x24000000, LENGTH = 512K
}
ENTRY(main)
SECTIONS
{
  .text : { *(.text .text.*) *(.rodata .rodata.*) *(.ARM.ex*) } > FLASH
  .data : { *(.data .data.*) } > RAM AT> FLASH
  .bss : { *(.bss .bss.*) *(COMMON) end = .; } > RAM
}
"""
FIRMWARE = """\
static const char constants[20] __attribute__((section(".mlf_params"))) = "in external flash";
static char workspace[100] __attribute__((section(".axi")));
static char other;
int main(int argc, char **argv)
{
    other = argv[0][0];
    workspace[argc] = constants[argc];
    return *(volatile char *)workspace;
}
"""


Link = Callable[..., Path]


@pytest.fixture
def link(tmp_path: Path, tool: Callable[[str], str]) -> Link:
    """Return a function that links FIRMWARE with a product's script and that of ``sections``; warnings are errors."""

    def link(sections: Sequence[PlacedSection], *options: str, product: str = PRODUCT, source: str = FIRMWARE) -> Path:
        script = placement_files(sections, on_board=False)[f"{PLACEMENT_FOLDER}/{LINKER_SCRIPT}"]
        for name, text in (("product.ld", product), (LINKER_SCRIPT, script.decode()), ("main.c", source)):
            (tmp_path / name).write_text(text)
        command = [tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, "-Os", "-nostartfiles", "-Wl,--fatal-warnings"]
        command += ["-Wl,--gc-sections", "-L.", "-Tproduct.ld", *(options or [f"-T{LINKER_SCRIPT}"]), "main.c"]
        done = subprocess.run([*command, "-o", "app.elf"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return tmp_path / "app.elf"

    return link


def sections_of(image: Path) -> dict[str, tuple[int, str]]:
    with image.open("rb") as file:
        return {section.name: (section["sh_addr"], section["sh_type"]) for section in ELFFile(file).iter_sections()}


def symbols_of(image: Path) -> dict[str, int]:
    with image.open("rb") as file:
        return {
            symbol.name: symbol["st_value"] for symbol in ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        }


def test_the_script(golden: Callable[[str, str], None]) -> None:
    for name, on_board in (("own.ld", False), ("board.ld", True)):
        golden(placement_files([PARAMS, AXI], on_board=on_board)[f"{PLACEMENT_FOLDER}/{LINKER_SCRIPT}"].decode(), name)


def test_without_sections_there_are_no_files() -> None:
    assert placement_files([], on_board=True) == {}


def test_sections_are_in_their_regions(link: Link) -> None:
    image = link([PARAMS, AXI])
    found, symbols = sections_of(image), symbols_of(image)
    assert found[".mlf_params"] == (0x90000000, "SHT_PROGBITS")
    assert found[".axi"] == (0x24000000, "SHT_NOBITS")
    assert (symbols["__mlf_params_start"], symbols["__mlf_params_end"]) == (0x90000000, 0x90000014)
    assert (symbols["__mlf_axi_start"], symbols["__mlf_axi_end"]) == (0x24000000, 0x24000064)


def test_without_the_script_sections_are_elsewhere(link: Link) -> None:
    found = sections_of(link([PARAMS, AXI], "-Wl,--no-fatal-warnings"))
    assert 0x08000000 <= found[".mlf_params"][0] < 0x08100000
    assert 0x20000000 <= found[".axi"][0] < 0x20020000
    assert found[".axi"][1] == "SHT_PROGBITS", "and take flash for what is no constant"
    with pytest.raises(AssertionError, match=r"orphan section `\.mlf_params' from"):
        link([PARAMS, AXI], "-Wl,--orphan-handling=warn")


def test_product_script_can_include_it(link: Link) -> None:
    found = sections_of(link([PARAMS, AXI], "-Wl,--build-id=none", product=f"{PRODUCT}INCLUDE {LINKER_SCRIPT}\n"))
    assert (found[".mlf_params"][0], found[".axi"][0]) == (0x90000000, 0x24000000)


def test_firmware_without_the_models_links(link: Link) -> None:
    found = sections_of(link([PARAMS, AXI], source="int main(void) { return 0; }\n"))
    assert not {".mlf_params", ".axi"} & set(found)


def test_unknown_region_is_rejected(link: Link) -> None:
    with pytest.raises(AssertionError, match=r"\.mlf_params: the linker script has no memory region OSPI"):
        link([PlacedSection(".mlf_params", "OSPI", memory=False), AXI])


def test_memory_after_the_start_of_the_heap_is_rejected(link: Link) -> None:
    with pytest.raises(AssertionError, match=r"\.axi: is in RAM, in which the heap begins; use another region"):
        link([PARAMS, PlacedSection(".axi", "RAM", memory=True)])


def test_section_larger_than_its_region_is_rejected(link: Link) -> None:
    with pytest.raises(AssertionError, match=r"region `AXI_SRAM' overflowed by \d+ bytes"):
        link([PARAMS, AXI], product=PRODUCT.replace("512K", "96"))


def test_the_folder_of_a_target(tmp_path: Path) -> None:
    result = write_target_tree(tmp_path, [], None, CPUS["cortex-m4"], placed=[PARAMS])
    assert {"mlf_placement.ld", "placement.cmake", "placement.mk", "params_binary.cmake", "SConscript"} == {
        path.removeprefix("placement/") for path in result.written if path.startswith("placement/")
    }
    assert "/placement/** -text\n" in (tmp_path / ".gitattributes").read_text()
    assert tree_damage(tmp_path) == []
    gone = write_target_tree(tmp_path, [], None, CPUS["cortex-m4"])
    assert len(gone.removed) == 5
    assert not (tmp_path / "placement").exists()
    assert "placement" not in (tmp_path / "mlf.cmake").read_text()


ON_BOARD = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
include(tree/mlf.cmake)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::placement mlf::board)
"""
MAIN = """\
#include <string.h>
static const char constants[] __attribute__((section(".constants"))) = "far away";
static char memory[1000] __attribute__((section(".dtcm")));
static char own[100] __attribute__((section(".bss.dtcm")));
int main(void)
{
    volatile char *to = memory;
    for (unsigned i = 0; i < sizeof constants; i++) {
        to[i] = ((volatile const char *)constants)[i];
    }
    return strcmp(memory, "far away") == 0 && *(volatile char *)own == 0 ? 42 : 1;
}
"""
REGIONS = [(board, memory.name) for board in BOARDS.values() for memory in board.others]
ON_PUSH = [
    next(place for place in REGIONS if place[0] is board)
    for board in dict.fromkeys(board for board, _ in REGIONS if board.cpu.startswith("cortex-m"))
]
"""One region of each board with a Cortex-M."""


@pytest.mark.parametrize(
    ("board", "region"),
    [pytest.param(*place, marks=[] if place in ON_PUSH else pytest.mark.sweep) for place in REGIONS],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_region_of_a_board_can_have_constants_and_memory(
    board: Board, region: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    tool(board.emulator)
    placed = [PlacedSection(".constants", region, memory=False), PlacedSection(".dtcm", region, memory=True)]
    write_target_tree(tmp_path / "tree", [], board, CPUS[board.cpu], placed=placed)
    (tmp_path / "CMakeLists.txt").write_text(ON_BOARD)
    (tmp_path / "main.c").write_text(MAIN)
    toolchain = toolchain_file(CPUS[board.cpu])
    configure = [tool("cmake"), "-G", "Ninja", "-B", "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"]
    for command in (configure, [tool("cmake"), "--build", "build"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    image = tmp_path / "build/app.elf"
    memory, found = board.regions[region], sections_of(image)
    for section in (".constants", ".dtcm"):
        assert memory.origin <= found[section][0] < memory.origin + memory.size
    assert found[".dtcm"][1] == "SHT_NOBITS"
    assert run_elf(image, board, timeout=60).exit_status == 42
