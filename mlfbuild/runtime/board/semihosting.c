/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
#include "semihosting.h"

#include <string.h>

enum operation {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE0 = 0x04,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0A,
    SYS_FLEN = 0x0C,
    SYS_GET_CMDLINE = 0x15,
    SYS_EXIT_EXTENDED = 0x20
};

#define ADP_STOPPED_APPLICATION_EXIT 0x20026u

#if defined(MLF_HOST_LINK)
#include "mlf_host_link.h"

volatile struct mlf_host_call mlf_host_call;

/* The host has a breakpoint here. mlf_serial.c replaces it by one that talks to the host itself. */
__attribute__((weak, noinline)) void mlf_host_stop(void)
{
    __asm__ volatile("" ::: "memory");
}

static int32_t call(enum operation operation, const void *argument)
{
    mlf_host_call.operation = (uint32_t)operation;
    mlf_host_call.argument = (uint32_t)(uintptr_t)argument;
    mlf_host_stop();
    return mlf_host_call.result;
}
#elif defined(__riscv)
/* Operation in a0, argument in a1, result in a0. The debugger recognises the three instructions, uncompressed and on one
   page. */
__attribute__((noinline)) static int32_t call(enum operation operation, const void *argument)
{
    register int32_t a0 __asm__("a0") = (int32_t)operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".balign 16\n\t"
                     ".option push\n\t"
                     ".option norvc\n\t"
                     "slli x0, x0, 0x1f\n\t"
                     "ebreak\n\t"
                     "srai x0, x0, 7\n\t"
                     ".option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}
#else
/* Operation in r0, argument in r1, result in r0. */
static int32_t call(enum operation operation, const void *argument)
{
    register int32_t r0 __asm__("r0") = (int32_t)operation;
    register const void *r1 __asm__("r1") = argument;
#if __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
#elif defined(__thumb__)
    __asm__ volatile("svc 0xab" : "+r"(r0) : "r"(r1) : "memory", "lr");
#else
    __asm__ volatile("svc 0x123456" : "+r"(r0) : "r"(r1) : "memory", "lr");
#endif
    return r0;
}
#endif

static uint32_t word(const void *pointer)
{
    return (uint32_t)(uintptr_t)pointer;
}

int32_t semihosting_open(const char *path, enum semihosting_mode mode)
{
    const uint32_t block[] = {word(path), (uint32_t)mode, strlen(path)};
    return call(SYS_OPEN, block);
}

int32_t semihosting_close(int32_t handle)
{
    const uint32_t block[] = {(uint32_t)handle};
    return call(SYS_CLOSE, block);
}

int32_t semihosting_read(int32_t handle, void *buffer, size_t size)
{
    const uint32_t block[] = {(uint32_t)handle, word(buffer), size};
    return call(SYS_READ, block);
}

int32_t semihosting_write(int32_t handle, const void *data, size_t size)
{
    const uint32_t block[] = {(uint32_t)handle, word(data), size};
    return call(SYS_WRITE, block);
}

int32_t semihosting_seek(int32_t handle, uint32_t position)
{
    const uint32_t block[] = {(uint32_t)handle, position};
    return call(SYS_SEEK, block);
}

int32_t semihosting_length(int32_t handle)
{
    const uint32_t block[] = {(uint32_t)handle};
    return call(SYS_FLEN, block);
}

void semihosting_print(const char *text)
{
    (void)call(SYS_WRITE0, text);
}

int32_t semihosting_command_line(char *buffer, size_t size)
{
    const uint32_t block[] = {word(buffer), size};
    return call(SYS_GET_CMDLINE, block);
}

void semihosting_exit(int status)
{
    const uint32_t block[] = {ADP_STOPPED_APPLICATION_EXIT, (uint32_t)status};
    for (;;) {
        (void)call(SYS_EXIT_EXTENDED, block);
    }
}
