"""Faults of links: data of models that linker scripts put in the wrong place."""

import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from mlfbuild.report.link import link_faults
from mlfbuild.report.sizes.images import any_image_sizes

SCRIPT = """\
ENTRY(Reset_Handler)
MEMORY { FLASH : ORIGIN = 0x0, LENGTH = 1M  RAM : ORIGIN = 0x20000000, LENGTH = RAM_SIZE }
SECTIONS {
  .text : { CODE RODATA } > FLASH
  .data : { *(.data .data.*) MORE } > RAM AT > FLASH
  .bss (NOLOAD) : { _sbss = .; *(BSS) _ebss = .; } > RAM
  BEHIND
}
"""
PARTS = {
    "CODE": "*(.text .text.*)", "RAM_SIZE": "64K", "RODATA": "*(.rodata .rodata.*)", "MORE": "", "BSS": ".bss .bss.*",
    "BEHIND": "__bss_end = .; _end = .; end = .;",
}  # fmt: skip
HEAP_USERS = ("rt_system_heap_init", "_sbrk", "umm_initialize")


@dataclass(frozen=True)
class Linker:
    """Link the objects of the fixture ``image`` with a script."""

    image: Path
    folder: Path

    def faults(self, *, code: str = "", objects: str = "", flags: str = "", **parts: str) -> list[tuple[str, str]]:
        """Return the code and the model of each fault; ``code`` is C that is also linked."""
        return [
            (fault.code, fault.place.removeprefix("app.elf: ")) for fault in self.found(code, objects, flags, **parts)
        ]

    def found(self, code: str = "", objects: str = "", flags: str = "", **parts: str):  # type: ignore[no-untyped-def]
        script = SCRIPT.replace("1M  RAM : ORIGIN", parts.pop("memory", "1M  RAM : ORIGIN"))
        for name, text in {**PARTS, **parts}.items():
            script = script.replace(name, text)
        (self.folder / "app.ld").write_text(script)
        (self.folder / "more.c").write_text(code)
        gcc = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-O1"]
        subprocess.run([*gcc, "-c", "more.c"], cwd=self.folder, check=True)
        options = [
            "-nostdlib",
            "-T",
            str(self.folder / "app.ld"),
            "-Wl,-Map=%.map",
            *flags.split(),
            str(self.folder / "more.o"),
        ]
        models = objects.split() or ["main.c.obj", "libmlf_alpha.a", "libmlf_beta.a", "libhelper.a"]
        subprocess.run([*gcc, *options, *models, "-o", self.folder / "app.elf"], cwd=self.image.parent, check=True)
        return link_faults(any_image_sizes(self.folder / "app.elf")).faults


@pytest.fixture
def linker(image: Path) -> Linker:
    return Linker(image, Path(tempfile.mkdtemp(dir=image.parent)))


def test_a_script_for_these_sections_has_no_faults(linker: Linker) -> None:
    assert linker.faults(code="void _sbrk(void) {}") == []
    assert linker.faults(code="void _sbrk(void) {}", BEHIND=PARTS["BEHIND"] + "_estack = .; _Min_Stack_Size = 0;") == []


@pytest.mark.parametrize("user", HEAP_USERS)
def test_an_orphan_workspace_in_the_heap(linker: Linker, user: str) -> None:
    """RT-Thread has scripts that list only ``*(.bss)``."""
    code = f"void {user}(void) {{}}"
    (fault,) = linker.found(code, BSS=".bss")
    assert (fault.code, fault.place) == ("section-overlaps-heap", "app.elf: model alpha")
    assert "2,048 bytes of .bss.noinit.tvm" in fault.reason and "add *(.bss.noinit.tvm) beside *(.bss)" in fault.hint
    assert linker.faults(code=code, BSS=".bss .bss.noinit.tvm") == [], "the hint helps"


def test_an_orphan_workspace_without_a_heap_is_harmless(linker: Linker) -> None:
    assert linker.faults(BSS=".bss") == []


def test_a_heap_ends_where_the_stack_begins(linker: Linker) -> None:
    ends = "__heap_start__ = 0x20000000; __StackLimit = 0x20000010; __StackTop = 0x20000020;"
    reached = linker.faults(BEHIND=ends)
    assert ("section-overlaps-heap", "model alpha") not in reached, ".data of main.c is at its start"
    assert linker.faults(BEHIND=ends.replace("0010", "0100").replace("0020", "0200")) == [
        ("section-overlaps-heap", "model alpha"),
        ("section-overlaps-stack", "model alpha"),
    ]


def test_data_in_the_stack(linker: Linker) -> None:
    stack = "_estack = ORIGIN(RAM) + LENGTH(RAM); _Min_Stack_Size = 0x1000;"
    found = linker.found(RAM_SIZE="5K", BEHIND=stack)
    assert {(fault.code, fault.place) for fault in found} == {
        ("section-overlaps-stack", "app.elf: model alpha"),
        ("section-overlaps-stack", "app.elf: model beta"),
    }
    assert "from 0x20000400 to 0x20001400 (_Min_Stack_Size)" in found[0].reason
    assert linker.faults(RAM_SIZE="8K", BEHIND=stack) == []


def test_a_stack_that_is_smaller_than_the_worst_case(linker: Linker) -> None:
    stack = "_estack = ORIGIN(RAM) + LENGTH(RAM); _Min_Stack_Size = 4;"
    found = linker.found(BEHIND=stack)
    assert (found[0].code, found[0].place) == ("stack-too-small", "app.elf: model alpha")
    assert "reserves 4 (_Min_Stack_Size)" in found[0].reason
    assert linker.faults(BEHIND=stack.replace("= 4", "= 256")) == []
    assert linker.faults(code="void xTaskCreate(void) {}", BEHIND=stack) == [], "models run in tasks"
    (note,) = link_faults(any_image_sizes(linker.folder / "app.elf")).notes
    assert note.startswith("stack: ") and "xTaskCreate" in note


def test_main_of_chibios_has_the_process_stack(linker: Linker) -> None:
    stack = "__process_stack_size__ = 4; __process_stack_base__ = .; . += 4; __process_stack_end__ = .; _end = .;"
    main = "__main_stack_base__ = .; . += 1024; __main_stack_end__ = .;"
    found = linker.found(BEHIND=main + stack)
    assert {fault.code for fault in found} == {"stack-too-small"}
    assert "reserves 4 (__process_stack_size__)" in found[0].reason
    assert linker.faults(BEHIND=main + stack.replace("4;", "256;")) == []
    assert linker.faults(code="void chThdCreateStatic(void) {}", BEHIND=main + stack) == [], "models run in threads"
    heap = "__heap_base__ = .; __heap_end__ = ORIGIN(RAM) + LENGTH(RAM);"
    assert linker.faults(BSS=".bss", BEHIND=heap) == [("section-overlaps-heap", "model alpha")]


def test_ample_stacks_are_not_compared_quickly(linker: Linker) -> None:
    deep = (
        "int deep(int n) { volatile char big[20000]; big[n] = 1; return big[n]; } int main(int n) { return deep(n); }"
    )
    stack = "_estack = ORIGIN(RAM) + LENGTH(RAM); _Min_Stack_Size = 16384;"
    objects = "libmlf_alpha.a"
    entry = "void Reset_Handler(void) { main(0); }"
    assert linker.faults(code=deep + entry, objects=objects, BEHIND=stack) == [("stack-too-small", "main")]
    assert link_faults(any_image_sizes(linker.folder / "app.elf"), quick=True).faults == ()
    linker.faults(code=deep + entry, objects=objects, BEHIND=stack.replace("16384", "16383"))
    assert len(link_faults(any_image_sizes(linker.folder / "app.elf"), quick=True).faults) == 1


def test_data_outside_the_memory_regions(linker: Linker) -> None:
    far = ".far 0x30000000 (NOLOAD) : { *(.bss.noinit.tvm) }"
    assert linker.faults(BSS=".bss", BEHIND=far) == [("section-outside-memory", "model alpha")]


def test_weights_in_ram(linker: Linker) -> None:
    (fault,) = linker.found(RODATA="*(.rodata)", MORE="*(.rodata.*)")
    assert (fault.code, fault.place) == ("weights-in-ram", "app.elf: model alpha")
    assert "1,256 bytes of constants (.rodata.mlf) take RAM, in .data" in fault.reason
    others = "*more*.o(.text*) *main.c.obj(.text*) *libmlf_beta.a:*(.text*) *libhelper.a:*(.text*)"
    constants = "*libmlf_beta.a:*(.rodata*)"
    parts = {"CODE": others, "RODATA": constants, "MORE": "*(.rodata.*)"}
    assert linker.faults(**parts) == [("weights-in-ram", "model alpha")]
    assert linker.faults(**parts | {"MORE": "*(.rodata.*) *(.text*)"}) == [], "its code is in RAM, too"


def test_flash_with_a_section_for_settings_is_not_ram(linker: Linker) -> None:
    memory = "1M QSPI (rx) : ORIGIN = 0x90000000, LENGTH = 1M RAM : ORIGIN"
    outside = ".weights : { *(.rodata.*) } > QSPI .settings (NOLOAD) : { *more*.o(.settings) } > QSPI"
    code = '__attribute__((section(".settings"), used)) char settings[4096];'
    parts = {"RAM_SIZE": "64K", "RODATA": "*(.rodata)", "BEHIND": outside, "code": code}
    assert linker.faults(memory=memory, **parts) == []


def test_data_in_ram_that_nothing_loads(linker: Linker) -> None:
    """The scripts of libopencm3 have such a section for the CCM of an STM32F4."""
    memory = "1M ccm : ORIGIN = 0x10000000, LENGTH = 64K RAM : ORIGIN"
    ccm = ".ccm : { *(.rodata.*) LONG(0) } > ccm"
    parts = {"RODATA": "*(.rodata)", "BEHIND": ccm, "memory": memory}
    found = linker.found(**parts)
    assert (found[0].code, found[0].place) == ("section-not-loaded", "app.elf: model alpha")
    assert "1,256 bytes of .rodata.mlf at 0x10000000 are in RAM" in found[0].reason
    workspace = linker.faults(BSS=".bss", BEHIND=ccm.replace(".rodata", ".bss.noinit"), memory=memory)
    assert workspace == [("section-not-loaded", "model alpha")], "LONG gives the section bytes in the file"
    hint = ccm.replace(".rodata", ".bss.noinit").replace(".ccm :", ".ccm (NOLOAD) :")
    assert linker.faults(BSS=".bss", BEHIND=hint, memory=memory) == []
    copied = linker.faults(**parts | {"BEHIND": f"{ccm} AT > FLASH"})
    assert {code for code, _ in copied} == {"weights-in-ram"}


def test_a_placement_that_the_script_does_not_mention(linker: Linker) -> None:
    gamma = """
        __attribute__((section(".dma"))) static char tvmgen_gamma_workspace[40];
        int tvmgen_gamma_run(int at) { return tvmgen_gamma_workspace[at]++; }
    """
    (linker.folder / "gamma_lib0.c").write_text(gamma)
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-c", "gamma_lib0.c"]
    subprocess.run(command, cwd=linker.folder, check=True)
    objects = f"main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a {linker.folder / 'gamma_lib0.o'}"
    (fault,) = linker.found(objects=objects)
    assert (fault.code, fault.place) == ("data-not-placed", "app.elf: model gamma")
    assert "40 bytes of .dma at 0x2" in fault.reason and "add a rule for .dma to the linker script" in fault.hint
    assert linker.faults(objects=objects, BEHIND=".dma (NOLOAD) : { *(.dma) } > RAM") == []


def test_orphan_variables_that_are_not_zeroed(linker: Linker) -> None:
    code = "static char state[40]; int tvmgen_gamma_run(int at) { return state[at]++; }"
    (linker.folder / "gamma_lib0.c").write_text(code)
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-fdata-sections", "-c", "gamma_lib0.c"]
    subprocess.run(command, cwd=linker.folder, check=True)
    objects = f"main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a {linker.folder / 'gamma_lib0.o'}"
    (fault,) = linker.found(objects=objects, BSS=".bss")
    assert (fault.code, fault.place) == ("section-not-initialised", "app.elf: model gamma")
    assert "add *(.bss.state) beside *(.bss)" in fault.hint
    assert linker.faults(objects=objects, BSS=".bss .bss.state") == []
    zeroed = linker.faults(objects=objects, BSS=".bss", BEHIND="", flags="-Wl,--defsym=__bss_start__=0x20000000 "
                           "-Wl,--defsym=__bss_end__=0x20010000")  # fmt: skip
    assert zeroed == [], "start-up code zeroes more than .bss"


def test_symbols_of_the_linked_files_are_compared(linker: Linker) -> None:
    (fault,) = linker.found(code="int helper(int at) { return at; } int tvmgen_alpha_run(int at) { return at; }")
    assert (fault.code, fault.place) == ("symbols-in-conflict", "app.elf: symbols")
    assert "model alpha and the firmware both define the global symbol 'tvmgen_alpha_run'" in fault.reason
    text = (linker.folder / "app.elf.map").read_text()
    (linker.folder / "app.elf.map").write_text(text.replace("LOAD libmlf_alpha.a", "LOAD gone/libmlf_alpha.a"))
    result = link_faults(any_image_sizes(linker.folder / "app.elf"))
    assert result.faults == ()
    assert result.notes[-1] == "symbols of gone/libmlf_alpha.a: the map lists it, but there is no such file"


def test_a_check_of_blobs_in_a_static_library(linker: Linker) -> None:
    """The linker takes the model's weak definition, which is there before it searches the library."""
    weak = "__attribute__((weak)) int mlf_alpha_check_parameters(void) { return 0; }"
    strong = "int mlf_alpha_check_parameters(void) { return 1; }"
    source, library = linker.folder / "hook.c", linker.folder / "libhook.a"
    source.write_text(strong)
    run = partial(subprocess.run, cwd=linker.folder, check=True)
    run(["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-c", source])
    run(["arm-none-eabi-ar", "rc", library, "hook.o"])
    objects = f"main.c.obj libmlf_alpha.a libmlf_beta.a libhelper.a {library}"
    assert linker.faults(code=weak, objects=objects) == [("check-parameters-not-linked", "model alpha")]
    assert linker.faults(code=weak, objects=objects, flags=str(linker.folder / "hook.o")) == [], "the hint helps"
    assert linker.faults(code=weak) == [], "a model may take any blob"


def test_code_in_a_section_that_the_script_does_not_mention(linker: Linker, image: Path) -> None:
    """Code for RAM stays in flash then, without a word from the linker."""
    fast = image.parent / "fast"
    fast.mkdir(exist_ok=True)
    (fast / "fast.c").write_text('__attribute__((section(".ramfunc"), used)) int fast(void) { return 1; }')
    gcc = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-O1", "-c", "fast.c", "-o", "fast.o"]
    subprocess.run(gcc, cwd=fast, check=True)
    (fast / "libmlf_beta.a").write_bytes((image.parent / "libmlf_beta.a").read_bytes())
    subprocess.run(["arm-none-eabi-ar", "rcs", "libmlf_beta.a", "fast.o"], cwd=fast, check=True)
    objects = "main.c.obj libmlf_alpha.a -Wl,--whole-archive fast/libmlf_beta.a -Wl,--no-whole-archive libhelper.a"
    assert linker.faults(objects=objects) == [("code-not-placed", "model beta")]
    assert linker.faults(objects=objects, MORE="*(.ramfunc)") == []
