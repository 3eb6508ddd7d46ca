/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Calls to the debugger or emulator that runs the firmware: Arm's "Semihosting for AArch32 and AArch64".
 *
 * Paths are the host's, relative to the folder where QEMU was started. Only a debugger or emulator handles these
 * calls; without one they fault, so use them only in test firmware.
 */
#ifndef MLF_SEMIHOSTING_H_
#define MLF_SEMIHOSTING_H_

#include <stddef.h>
#include <stdint.h>

/* The specification's numbers of fopen()'s modes; with the special path ":tt" they select stdin, stdout and stderr. */
enum semihosting_mode { SEMIHOSTING_RB = 1, SEMIHOSTING_RB_PLUS = 3, SEMIHOSTING_WB = 5, SEMIHOSTING_AB = 9 };

/* Return a handle, or -1. */
int32_t semihosting_open(const char *path, enum semihosting_mode mode);
/* Return 0, or -1. */
int32_t semihosting_close(int32_t handle);
/* Return the number of bytes that were NOT read or written, or a negative number. */
int32_t semihosting_read(int32_t handle, void *buffer, size_t size);
int32_t semihosting_write(int32_t handle, const void *data, size_t size);
/* Seek to `position` bytes from the start; return 0, or a negative number. */
int32_t semihosting_seek(int32_t handle, uint32_t position);
/* Return the length of the file in bytes, or -1. */
int32_t semihosting_length(int32_t handle);
/* Print a string to the debugger's console. */
void semihosting_print(const char *text);
/* Copy the command line with a terminating zero byte; return 0, or -1 if it is longer than `size`. */
int32_t semihosting_command_line(char *buffer, size_t size);
/* End the run. */
void semihosting_exit(int status) __attribute__((noreturn));

#endif /* MLF_SEMIHOSTING_H_ */
