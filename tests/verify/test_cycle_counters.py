"""The counters of firmware (``runtime/profile``), on simulated registers: they have not run on silicon here."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import RUNTIME

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each access to a register is a step of the simulated device. */
static volatile uint32_t *access_to(uint32_t address);
#define MLF_REGISTER(address) (*access_to(address))
#include "mlf_cycles.h"

static struct { uint32_t address, value; } registers[64];
static uint32_t accesses[4096], number_of_accesses;
static const char *flaw;

static volatile uint32_t *at(uint32_t address)
{
    int i = 0;
    while (registers[i].address != 0 && registers[i].address != address) { i++; }
    registers[i].address = address;
    return &registers[i].value;
}

static int is(const char *name) { return strcmp(flaw, name) == 0; }

#if defined(MLF_COUNTER_SYSTICK)
void SysTick_Handler(void);
static int pending;
static void tick(void)
{
    if (pending > 0 && --pending == 0) {
        *at(0xE000ED04) = 0;
        SysTick_Handler();
    }
    if (is("disabled")) { *at(0xE000E010) &= ~4u; }
    if (is("absent")) { *at(0xE000E014) = 0; }
    if ((*at(0xE000E010) & 1) == 0 || is("stopped")) { return; }
    uint32_t left = *at(0xE000E018);
    for (int i = 0; i < 3; i++) {
        left = left == 0 ? *at(0xE000E014) : left - 1;
        if (left == 0) {
            *at(0xE000ED04) = 1u << 26;
            pending = 2; /* the exception is taken some accesses later */
        }
    }
    *at(0xE000E018) = left;
}
#elif defined(MLF_COUNTER_PMU)
static void tick(void)
{
    *at(0xE0003E00) = is("absent") ? 0 : 0x00A05F08;
    if (is("trace")) { *at(0xE000EDFC) &= ~(1u << 24); }
    if (is("disabled")) { *at(0xE0003E04) &= ~1u; }
    const int on = (*at(0xE000EDFC) >> 24 & 1) && (*at(0xE0003E04) & 1) && (*at(0xE0003C00) >> 31);
    *at(0xE000307C) += on && !is("stopped") ? 7 : 0;
}
#else
static void tick(void)
{
    if (is("absent")) { *at(0xE0001000) |= 1u << 25; }
    if (is("trace")) { *at(0xE000EDFC) &= ~(1u << 24); }
    if (is("disabled") || (is("locked") && *at(0xE0001FB0) != 0xC5ACCE55)) { *at(0xE0001000) &= ~1u; }
    const int on = (*at(0xE000EDFC) >> 24 & 1) && (*at(0xE0001000) & 1);
    *at(0xE0001004) += on && !is("stopped") ? 7 : 0;
}
#endif

static volatile uint32_t *access_to(uint32_t address)
{
    tick();
    accesses[number_of_accesses++ % 4096] = address;
    return at(address);
}

#include "mlf_cycles.c"

int main(int argc, char **argv)
{
    flaw = argc > 1 ? argv[1] : "";
    *at(0xE0001004) = *at(0xE000307C) = 0xFFFFFF00u; /* they pass 2^32 soon */
    printf("%d", (int)mlf_cycles_start());
    uint32_t before = 0;
    for (int i = 0; flaw[0] == '\0' && i < 2000; i++) {
#if defined(MLF_COUNTER_SYSTICK)
        if (i % 50 == 40 && pending == 0) { *at(0xE000E018) = 20; before = mlf_cycles_now(); } /* shortly before 0 */
#endif
        const uint32_t now = mlf_cycles_now();
        if (i > 0 && (now - before == 0 || now - before > 200)) { printf(" jump of %u at %d", now - before, i); }
        before = now;
    }
    printf("\n");
    return 0;
}
"""
FLAWS = {
    "DWT": {"": 0, "locked": 0, "trace": 1, "absent": 2, "disabled": 3, "stopped": 4},
    "PMU": {"": 0, "trace": 1, "absent": 2, "disabled": 3, "stopped": 4},
    "SYSTICK": {"": 0, "absent": 2, "disabled": 3, "stopped": 4},
}


@pytest.mark.parametrize("counter", FLAWS)
def test_counters_start_advance_over_their_end_and_refuse_what_does_not_count(
    counter: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    source = tmp_path / "device.c"
    source.write_text(SOURCE)
    program = tmp_path / "device"
    flags = ["-w", f"-DMLF_COUNTER_{counter}", f"-I{RUNTIME / 'profile'}", "-x", "c"]
    subprocess.run([tool("gcc"), *flags, source, "-o", program], check=True)
    results = {
        flaw: subprocess.run([program, flaw], check=True, capture_output=True, text=True, timeout=20).stdout
        for flaw in FLAWS[counter]
    }
    assert results == {flaw: f"{status}\n" for flaw, status in FLAWS[counter].items()}
