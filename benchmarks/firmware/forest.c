/*
 * Firmware around one forest: runs all rows between the marks of the counter, then counts the labels that are expected.
 *
 * forest_data.h is generated: FEATURE, `rows[ROWS][WIDTH]`, `expected[ROWS]`, CLASSES, and forest_run(row, scores), which
 * returns the position of the label. With BASELINE defined the forest is not called.
 */
#include <stdint.h>

#include "forest_data.h"
#include "mlf_bench.h"
#include "mlf_board.h"

enum { PAINT = 0xA5 };

extern uint8_t __stack_limit[];

static float scores[CLASSES];
static int32_t labels[ROWS];

__attribute__((noinline)) static void run_all(void)
{
    for (int i = 0; i < ROWS; i++) {
#ifdef BASELINE
        labels[i] = (int32_t)rows[i][0]; /* keeps the rows in the image */
#else
        labels[i] = forest_run(rows[i], scores);
#endif
    }
}

static void report(const char *what, long value)
{
    mlf_board_puts(what);
    mlf_board_put_decimal(value);
    mlf_board_puts("\n");
}

__attribute__((noinline)) static long stack_used(void)
{
    volatile uint8_t *const top = (volatile uint8_t *)__builtin_frame_address(0) - 64; /* below: the frame */
    for (volatile uint8_t *at = __stack_limit; at < top; at++) {
        *at = PAINT;
    }
    run_all();
    const volatile uint8_t *at = __stack_limit;
    while (at < top && *at == PAINT) {
        at++;
    }
    return (long)(top - at) + 64;
}

int main(void)
{
    long equal = 0;
    mlf_bench_begin();
    run_all();
    mlf_bench_end();
    report("stack ", stack_used());
    for (int i = 0; i < ROWS; i++) {
        equal += labels[i] == expected[i];
    }
    report("equal ", equal);
    report("wrong ", 0);
    return 0;
}
