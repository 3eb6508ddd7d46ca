/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Kernels whose cycles show the wait states of the memories of a device: `mlfbuild calibrate`.
 *
 *   calibrate OUTPUT
 *
 * The same kernels are built for a device, where a counter measures them, and for an emulated board, where the cycle
 * model computes them. OUTPUT gets two words about the counter, as in mlf_profile.h, and the cycles of each kernel in
 * each pass. Kernels begin at multiples of 64 bytes, so that they lie in lines of memories and caches in the same way.
 * They use only instructions of Armv6-M, and 8 KiB of each memory.
 */
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#if defined(MLF_COUNTER_DWT) || defined(MLF_COUNTER_PMU) || defined(MLF_COUNTER_SYSTICK)
#define MEASURED 1
#include "mlf_cycles.h"
#else
#define MEASURED 0
static inline uint32_t mlf_cycles_now(void)
{
    return 0;
}
#endif

enum { PASSES = 2, WORDS = 2048, EXIT_FILES = 2, EXIT_COUNTER = 16, PACE_ROUNDS = 10000 };

static const uint32_t constants[WORDS] __attribute__((aligned(64))) = {1};
static uint32_t variables[WORDS] __attribute__((aligned(64)));

typedef void kernel(const uint32_t *memory);

/* `memory` is in r0. */
#define KERNEL(name, code)                                                                          \
    __attribute__((naked, noinline, used, aligned(64))) static void kernel_##name(const uint32_t *memory) \
    {                                                                                               \
        __asm__ volatile(".syntax unified\n\t" code "bx lr\n\t" ::: "memory");                       \
    }

KERNEL(nothing, "")
KERNEL(loop, "movs r1, #255\n"
             "1: subs r1, r1, #1\n\t"
             "bne 1b\n\t")
/* Eight words in a row, 8 KiB in all. */
#define LOADS "movs r1, #255\n"       \
              "1: ldr r2, [r0]\n\t"   \
              "ldr r3, [r0, #4]\n\t"  \
              "ldr r2, [r0, #8]\n\t"  \
              "ldr r3, [r0, #12]\n\t" \
              "ldr r2, [r0, #16]\n\t" \
              "ldr r3, [r0, #20]\n\t" \
              "ldr r2, [r0, #24]\n\t" \
              "ldr r3, [r0, #28]\n\t" \
              "adds r0, r0, #32\n\t"  \
              "subs r1, r1, #1\n\t"   \
              "bne 1b\n\t"
/* One word of 32 bytes, with time between the loads. */
#define APART "movs r1, #255\n"       \
              "1: ldr r2, [r0]\n\t"   \
              "adds r0, r0, #32\n\t"  \
              "adds r3, r2, #1\n\t"   \
              "subs r1, r1, #1\n\t"   \
              "bne 1b\n\t"
KERNEL(ram_loads, LOADS)
KERNEL(flash_loads, LOADS)
KERNEL(ram_apart, APART)
KERNEL(flash_apart, APART)
KERNEL(straight, ".rept 1024\n\t"
                 "adds r0, r0, #1\n\t"
                 ".endr\n\t")
KERNEL(jumps, ".rept 100\n\t"
              "b 1f\n\t"
              ".p2align 5\n"
              "1: adds r0, r0, #1\n\t"
              ".endr\n\t")
/* A loop that is longer than a line, but not than a cache. */
KERNEL(long_loop, "movs r1, #31\n"
                  "1:\n\t"
                  ".rept 40\n\t"
                  "adds r0, r0, #1\n\t"
                  ".endr\n\t"
                  "subs r1, r1, #1\n\t"
                  "bne 1b\n\t")

#define KERNELS 9
static kernel *const kernels[KERNELS] = {kernel_nothing,   kernel_loop,       kernel_ram_loads,
                                         kernel_ram_apart, kernel_flash_loads, kernel_flash_apart,
                                         kernel_straight,  kernel_jumps,      kernel_long_loop};
static const uint32_t *const memories[KERNELS] = {variables, variables, variables, variables, constants,
                                                  constants, variables, variables, variables};
static struct {
    uint32_t pace, read;
    uint32_t cycles[PASSES][KERNELS];
} results;

/* The cycle model counts calls of kernels from here, in one call of this function. */
__attribute__((noinline, used)) static void run_all(void)
{
    for (uint32_t i = 0; i < PASSES * KERNELS; i++) {
        const uint32_t began = mlf_cycles_now();
        __asm__ volatile("" ::: "memory");
        kernels[i % KERNELS](memories[i % KERNELS]);
        __asm__ volatile("" ::: "memory");
        results.cycles[i / KERNELS][i % KERNELS] = mlf_cycles_now() - began;
    }
}

int main(int argc, char **argv)
{
#if MEASURED
    const enum mlf_cycles_refusal refusal = mlf_cycles_start();
    if (refusal != MLF_CYCLES_COUNT) {
        return EXIT_COUNTER + (int)refusal;
    }
    const uint32_t began = mlf_cycles_now();
    results.read = mlf_cycles_now() - began;
    const uint32_t before = mlf_cycles_now();
    mlf_cycles_spin(PACE_ROUNDS);
    results.pace = mlf_cycles_now() - before;
#endif
    run_all();
#if MEASURED
    const int file = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    const int ok = file >= 0 && write(file, &results, sizeof results) == (int)sizeof results;
    return ok && close(file) == 0 ? 0 : EXIT_FILES;
#else
    (void)argc, (void)argv;
    return 0;
#endif
}
