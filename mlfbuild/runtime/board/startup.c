/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * From reset to main(): memory, arguments and constructors. The file that is included at the end has what depends on the
 * architecture: the vector table, Reset_Handler(), which calls start(), and the handling of faults.
 *
 * Symbols with two leading underscores come from mlf_board.ld.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mlf_board.h"
#include "semihosting.h"

typedef void (*handler)(void);

/* For functions that begin before the C library has chosen the canary of -fstack-protector, and for assembly. */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define NO_CANARY __attribute__((no_stack_protector))
#endif
#endif
#if !defined(NO_CANARY)
#define NO_CANARY
#endif

extern uint32_t __stack_limit[], __stack_top[], __fault_stack_top[];
extern char __data_start[], __data_end[], __data_load[];
extern char __bss_start[], __bss_end[], __dtcm_start[], __dtcm_end[];
extern const handler __init_array_start[], __init_array_end[];

int main(int argc, char **argv);

NO_CANARY void Reset_Handler(void) __attribute__((noreturn));

static char command_line[256];
static char *arguments[16];

/* Split the command line at spaces (QEMU does not quote words) and return the number of words. */
static int read_arguments(void)
{
    const int most = (int)(sizeof arguments / sizeof arguments[0]) - 1; /* argv ends with a null pointer */
    int count = 0;
    if (semihosting_command_line(command_line, sizeof command_line) != 0) {
        return 0;
    }
    for (char *at = command_line; *at != '\0' && count < most; at++) {
        if (*at == ' ') {
            *at = '\0';
        } else if (at == command_line || at[-1] == '\0') {
            arguments[count++] = at;
        }
    }
    return count;
}

#ifdef MLF_HOST_LINK
/* Replace it to set up clocks, wait states and caches of a device: the key `setup` of a runner. */
void mlf_board_setup(void);
__attribute__((weak)) void mlf_board_setup(void)
{
}
#endif

/* Not inlined: before Reset_Handler has enabled them, no floating-point or vector instruction may run. */
NO_CANARY __attribute__((noinline, noreturn)) static void start(void)
{
    memcpy(__data_start, __data_load, (size_t)(__data_end - __data_start));
    memset(__bss_start, 0, (size_t)(__bss_end - __bss_start));
    memset(__dtcm_start, 0, (size_t)(__dtcm_end - __dtcm_start));
    for (const handler *constructor = __init_array_start; constructor != __init_array_end; constructor++) {
        (*constructor)();
    }
#ifdef MLF_HOST_LINK
    mlf_board_setup();
#endif
    exit(main(read_arguments(), arguments));
}

/* C++ objects with static storage identify their image by the address of this variable. */
void *__dso_handle;

static void print_register(const char *name, uint32_t value)
{
    char text[] = " 0x00000000";
    for (int digit = 0; digit < 8; digit++) {
        text[10 - digit] = "0123456789abcdef"[(value >> (4 * digit)) & 0xF];
    }
    semihosting_print(name);
    semihosting_print(text);
}

#if defined(__riscv)
#include "startup_riscv.h"
#elif __ARM_ARCH_PROFILE == 'A'
#include "startup_cortex_a.h"
#else
#include "startup_cortex_m.h"
#endif
