/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
#include "mlf_bench.h"

/* The compiler would remove an empty function and its calls. This body emits no instruction, but it is not removed. */
__attribute__((noinline)) void mlf_bench_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void mlf_bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}
