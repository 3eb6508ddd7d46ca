/*
 * Firmware around one model: marks one inference for the counter, and reports memory by painting it.
 *
 * case_data.h is generated: MODEL_HEADER, the names below, `inputs[CASES][INPUT_SIZE]`, `expected[CASES][OUTPUT_SIZE]`
 * of ELEMENTs, which may differ by TOLERANCE.
 * A network with a state has STATE_SIZE bytes of it, which MODEL_RESET sets: the CASES are consecutive runs.
 * With BASELINE defined the model is not called: what the linker keeps then is the harness alone.
 */
#include <stdint.h>
#include <string.h>

#include "case_data.h"
#include "mlf_bench.h"
#include "mlf_board.h"
#include MODEL_HEADER

enum { PAINT = 0xA5 };

extern uint8_t __stack_limit[];

static uint8_t workspace[WORKSPACE_SIZE + 16] __attribute__((aligned(16)));
static ELEMENT input[sizeof inputs[0] / sizeof inputs[0][0]]; /* in RAM, as in firmware; the cases are in flash */
static ELEMENT output[OUTPUT_SIZE];
#if defined(BASELINE)
#undef MODEL_RESET
#define MODEL_RESET (void)0
#elif STATE_SIZE > 0
static uint8_t kept[STATE_SIZE] __attribute__((aligned(16)));
#endif

__attribute__((noinline)) static int32_t run(void)
{
#ifdef BASELINE
    __asm__ volatile("" ::"r"(input)); /* keeps the inputs in the image */
    return 0;
#else
    struct MODEL_INPUTS in = {input};
    struct MODEL_OUTPUTS out = {output};
    return MODEL_RUN(&in, &out, workspace);
#endif
}

static void report(const char *what, long value)
{
    mlf_board_puts(what);
    mlf_board_put_decimal(value);
    mlf_board_puts("\n");
}

/* Bytes of the stack below this function's frame that one inference writes to. */
__attribute__((noinline)) static long stack_used(void)
{
    volatile uint8_t *const top = (volatile uint8_t *)__builtin_frame_address(0) - 64; /* below: the frame */
    for (volatile uint8_t *at = __stack_limit; at < top; at++) {
        *at = PAINT;
    }
    (void)run();
    const volatile uint8_t *at = __stack_limit;
    while (at < top && *at == PAINT) {
        at++;
    }
    return (long)(top - at) + 64;
}

static long arena_used(void)
{
    long used = WORKSPACE_SIZE + 16;
    while (used > 0 && workspace[used - 1] == PAINT) {
        used--;
    }
    return used;
}

int main(void)
{
    long wrong = 0;
    memset(workspace, PAINT, sizeof workspace);
    memcpy(input, inputs[0], sizeof input);
    MODEL_RESET;
    mlf_bench_begin();
    const int32_t status = run();
    mlf_bench_end();
    report("arena ", arena_used());
    report("stack ", stack_used());
    MODEL_RESET;
    for (int i = 0; i < CASES; i++) {
        memset(output, PAINT, sizeof output);
        memcpy(input, inputs[i], sizeof input);
        wrong += run();
        for (int j = 0; j < OUTPUT_SIZE; j++) {
            const ELEMENT difference = (ELEMENT)(output[j] - expected[i][j]);
            wrong += !(difference <= TOLERANCE && -difference <= TOLERANCE);
        }
    }
    report("wrong ", wrong + status);
    return wrong != 0 || status != 0;
}
