#include "mlf_bench.h"

/* An empty function would be dropped with its calls; this body is empty too, but not for the compiler. */
__attribute__((noinline)) void mlf_bench_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void mlf_bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}
