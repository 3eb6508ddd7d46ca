/* Does what its first argument says, so that one image shows all that board support promises. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlf_bench.h"
#include "mlf_board.h"

void Reset_Handler(void);

/* The sizes of a float network with 843 KB of weights, 221 KB of arena and 110 KB of input. */
static const unsigned char weights[863000] __attribute__((section(".rodata.tvm"))) = {1, [862999] = 77};
static unsigned char arena[226000] __attribute__((section(".bss.noinit.tvm")));
static unsigned char input[112640];
static int fast __attribute__((section(".bss.dtcm.net")));
static int boots __attribute__((section(".bss.noinit.count")));
static int initialised = 42;

/* Whether memory is as C promises it at the start of main; then it is made dirty. */
static int memory_is_fresh(void)
{
    int fresh = initialised == 42 && fast == 0;
    for (size_t i = 0; i < sizeof input; i++) {
        fresh = fresh && input[i] == 0;
    }
    initialised = fast = 7;
    memset(input, 7, sizeof input);
    return fresh;
}

static int reset_twice(void)
{
    boots = boots >= 100 && boots < 102 ? boots + 1 : 100;
    if (boots < 102) {
        memset(arena, boots, sizeof arena);
        Reset_Handler();
    }
    return arena[0] == 101 && arena[sizeof arena - 1] == 101 ? 0 : 1;
}

static int use_large_memory(volatile size_t last)
{
    memset(arena, weights[last - 1], sizeof arena);
    return weights[last - 1] - arena[sizeof arena - 1] == 0 && weights[last - 1] == 77 ? 0 : 1;
}

/* A loop that GCC turns into vector instructions on a core that has them. */
__attribute__((noinline)) static void multiply(float *values, float factor)
{
    for (int i = 0; i < 20; i++) {
        values[i] *= factor;
    }
}

static int compute(int count)
{
    float values[20];
    mlf_bench_begin();
    for (int i = 0; i < 20; i++) {
        values[i] = (float)i;
    }
    multiply(values, sqrtf((float)count));
    mlf_bench_end();
    printf("%.3f %d\n", (double)values[19], count);
    return 0;
}

static int copy_file(const char *from, const char *to)
{
    char bytes[64];
    const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (in < 0 || out < 0) {
        return 1;
    }
    const int size = (int)lseek(in, 0, SEEK_END);
    lseek(in, 0, SEEK_SET);
    for (int got; (got = (int)read(in, bytes, sizeof bytes)) > 0;) {
        if (write(out, bytes, (size_t)got) != got) {
            return 1;
        }
    }
    printf("%d bytes\n", size);
    return close(in) | close(out);
}

static int overflow(volatile int depth)
{
    volatile char bytes[256];
    bytes[0] = (char)depth;
    return depth == 100000 ? 0 : overflow(depth + 1) + bytes[0];
}

static int dispatch(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "status") == 0) {
        return atoi(argv[2]);
    }
    if (strcmp(what, "arguments") == 0) {
        for (int i = 0; i < argc; i++) {
            printf("%d=%s\n", i, argv[i]);
        }
        return argv[argc] == NULL ? 0 : 1;
    }
    if (strcmp(what, "puts") == 0) {
        mlf_board_puts("least ");
        mlf_board_put_decimal(-2147483647L - 1);
        mlf_board_puts(" most ");
        mlf_board_put_decimal(2147483647L);
        mlf_board_puts("\n");
        mlf_board_exit(0);
    }
    if (strcmp(what, "reset") == 0) {
        return reset_twice();
    }
    if (strcmp(what, "large") == 0) {
        return use_large_memory(sizeof weights);
    }
    if (strcmp(what, "compute") == 0) {
        return compute(argc);
    }
    if (strcmp(what, "copy") == 0) {
        return copy_file(argv[2], argv[3]);
    }
    if (strcmp(what, "heap") == 0) {
        return malloc(200000) != NULL && malloc(1u << 30) == NULL ? 0 : 1;
    }
    if (strcmp(what, "undefined") == 0) {
#ifdef __riscv
        __asm__ volatile("unimp");
#else
        __asm__ volatile("udf #0");
#endif
    }
    if (strcmp(what, "unmapped") == 0) {
        *(volatile int *)0xE0100000 = 1;
    }
    if (strcmp(what, "overflow") == 0) {
        return overflow(0);
    }
    if (strcmp(what, "hang") == 0) {
        puts("about to hang");
        for (volatile int forever = 1; forever;) {
        }
    }
    return 99;
}

int main(int argc, char **argv)
{
    return memory_is_fresh() ? dispatch(argc, argv) : 98;
}
