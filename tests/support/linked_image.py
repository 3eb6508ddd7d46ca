"""An image with two models, a library and firmware, linked from generated C."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCES = {
    "alpha_lib0.c": """\
#include <stdint.h>
__attribute__((section(".rodata.mlf"))) static const int8_t tvmgen_alpha_conv2d_0_filter[1000] = {1};
__attribute__((section(".rodata.mlf"))) static const int8_t tvmgen_alpha_softmax_1_table[256] = {1};
__attribute__((section(".bss.noinit.tvm"))) static uint8_t tvmgen_alpha_workspace[2048];
static uint8_t tvmgen_alpha_state[64];
__attribute__((noinline)) static int32_t tvmgen_alpha_conv2d_0(volatile int8_t *to, int at)
{
    return to[at] += tvmgen_alpha_conv2d_0_filter[at];
}
int32_t tvmgen_alpha_run(int at)
{
    tvmgen_alpha_state[at] += tvmgen_alpha_softmax_1_table[at];
    return tvmgen_alpha_conv2d_0((volatile int8_t *)tvmgen_alpha_workspace, at) + tvmgen_alpha_state[at];
}
""",
    "beta_lib0.c": """\
#include <stdint.h>
static const int8_t mlf_parameter_0[300] = {2};
static const int32_t mlf_tensors[10] = {3};
static uint8_t tvmgen_beta_workspace[512];
int32_t tvmgen_beta_run(int at) { return tvmgen_beta_workspace[at] += mlf_parameter_0[at] + mlf_tensors[at % 10]; }
""",
    "helper.c": "int helper(int at) { return at * 3; }\n",
    "main.c": """\
#include <stdint.h>
int32_t tvmgen_alpha_run(int), tvmgen_beta_run(int);
int helper(int);
static int initialised[25] = {1, 2, 3};
int main(int argc, char **argv)
{
    (void)argv;
    return tvmgen_alpha_run(argc) + tvmgen_beta_run(argc) + helper(argc) + initialised[argc]++;
}
void Reset_Handler(void) { main(0, 0); for (;;) { } }
""",
}
SCRIPT = """\
ENTRY(Reset_Handler)
MEMORY { FLASH (rx) : ORIGIN = 0x0, LENGTH = 1M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 1M }
SECTIONS {
  .text : { *(.text .text.*) } > FLASH
  .rodata : { *(.rodata .rodata.*) } > FLASH
  .data : { *(.data .data.*) } > RAM AT > FLASH
  .bss (NOLOAD) : { *(.bss .bss.*) } > RAM
  .stack (NOLOAD) : { . = . + 4096; } > RAM
}
"""


def linked_image(folder: Path, gcc: str, constants: Mapping[str, str] | None = None) -> Path:
    """Link ``app.elf`` in ``folder`` with the program ``gcc``; ``app.elf.map`` is in the same folder.

    ``constants`` are ASCII texts by the names that ``main.c`` defines; with them, the image has debug information.
    """
    found = constants or {}
    extra = "".join(f"const char {name}[] = {json.dumps(text)};\n" for name, text in found.items())
    flags = [gcc, "-mcpu=cortex-m4", "-mthumb", "-O1", "-ffunction-sections", *(["-g"] if found else [])]
    for name, text in SOURCES.items():
        (folder / name).write_text(f"{text}{extra}" if name == "main.c" else text)
        subprocess.run([*flags, "-c", name, "-o", f"{name}.obj"], cwd=folder, check=True)
    ar = gcc.removesuffix("gcc") + "ar"
    for library, member in (("mlf_alpha", "alpha_lib0.c"), ("mlf_beta", "beta_lib0.c"), ("helper", "helper.c")):
        subprocess.run([ar, "rcs", f"lib{library}.a", f"{member}.obj"], cwd=folder, check=True)
    (folder / "app.ld").write_text(SCRIPT)
    objects = ["main.c.obj", "libmlf_alpha.a", "libmlf_beta.a", "libhelper.a"]
    options = [
        "-nostdlib", "-T", "app.ld", "-Wl,-Map=%.map", "-Wl,--gc-sections", *(f"-Wl,-u,{name}" for name in found),
    ]  # fmt: skip
    subprocess.run([*flags, *options, *objects, "-o", "app.elf"], cwd=folder, check=True)
    return folder / "app.elf"
