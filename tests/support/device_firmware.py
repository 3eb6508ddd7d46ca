"""Small firmware for the tests of runners: no board support, no semihosting, a few functions to stop at and to call."""

import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

SOURCE = r"""
#include <stdint.h>

#ifndef UART
#define UART 0x40004000 /* of MPS2 */
#endif

extern char __data_start[], __data_end[], __data_load[], __stack_top[];
void Reset_Handler(void);
__attribute__((noipa)) void HardFault_Handler(void) { for (;;) { } }

__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    __stack_top, (void *)Reset_Handler, (void *)HardFault_Handler, (void *)HardFault_Handler,
};

volatile int starts = 41;      /* initialised from flash */
volatile uint32_t rounds;
volatile int command;          /* tests write it */
unsigned char buffer[8192];

__attribute__((noipa)) void stop_here(void) { __asm__ volatile("nop" ::: "memory"); }

__attribute__((noipa)) int weighted(int a, int b, int c, int d, int e, int f)
{
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

__attribute__((noipa)) uint32_t sum(const unsigned char *data, uint32_t size)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < size; i++) { total += data[i]; }
    return total;
}

__attribute__((noipa)) int write_to(volatile int *address)
{
    *address = 1; /* the fault */
    return 0;
}

__attribute__((noipa)) int for_ever(void) { for (;;) { rounds++; } }

__attribute__((noipa)) void print(const char *text)
{
    volatile uint32_t *const uart = (volatile uint32_t *)UART; /* CMSDK UART */
    uart[2] = 1;
    for (; *text != 0; text++) { uart[0] = (unsigned char)*text; }
}

void Reset_Handler(void)
{
    for (int i = 0; i < __data_end - __data_start; i++) { __data_start[i] = __data_load[i]; }
    rounds = 0;
    command = 0;
    starts = starts + 1;
    print("hello\n");
    for (;;) {
        stop_here();
        rounds++;
        switch (command) {
        case 1: (void)for_ever(); break;
        case 2: (void)write_to((volatile int *)0xE0100000); break;
        case 3: print("again\n"); command = 0; break;
        default: break;
        }
        (void)weighted(1, 2, 3, 4, 5, (int)rounds);
        (void)sum(buffer, 1);
    }
}
"""
SCRIPT = """
MEMORY
{
  FLASH (rx) : ORIGIN = %(flash)#x, LENGTH = 4M
  RAM (rwx) : ORIGIN = %(ram)#x, LENGTH = 4M
}
ENTRY(Reset_Handler)
SECTIONS
{
  .vectors : { KEEP(*(.vectors)) } > FLASH
  .text : { *(.text*) *(.rodata*) } > FLASH
  .data : { __data_start = .; *(.data*) . = ALIGN(4); __data_end = .; } > RAM AT> FLASH
  __data_load = LOADADDR(.data);
  .bss (NOLOAD) : { __bss_start = .; *(.bss* COMMON) . = ALIGN(8); __bss_end = .; . += 4096; __stack_top = .; } > RAM
  /DISCARD/ : { *(.ARM.exidx*) }
}
"""


def device_firmware(
    folder: Path, *options: str, cpu: str = "cortex-m3", flash: int = 0, ram: int = 0x20000000, source: str = SOURCE
) -> Path:
    """Build the firmware in ``folder`` and return the image."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.c").write_text(source)
    (folder / "app.ld").write_text(SCRIPT % {"flash": flash, "ram": ram})
    flags = [f"-mcpu={cpu}", "-mthumb", "-g", "-O1", "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-Wall"]
    words = ["arm-none-eabi-gcc", *flags, *options, "-nostdlib", "-T", "app.ld", "app.c", "-o", "app.elf"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "app.elf"


def symbols(image: Path) -> dict[str, int]:
    """Return the addresses of the image's symbols, of functions with bit 0 clear."""
    with image.open("rb") as file:
        found = list(ELFFile(file).get_section_by_name(".symtab").iter_symbols())
    functions = {each.name for each in found if each["st_info"]["type"] == "STT_FUNC"}
    return {each.name: each["st_value"] & ~(each.name in functions) for each in found}
