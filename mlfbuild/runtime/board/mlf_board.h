/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Board support for firmware on boards that QEMU emulates: output and exit status through semihosting.
 *
 * A firmware is a main() that links mlf::board. QEMU prints its standard output, main's result is QEMU's exit status,
 * open(), read(), write() and lseek() access files of the host, and `-semihosting-config arg=...` sets argv.
 * If a fault occurs, its name and the registers are printed, and the run ends with MLF_BOARD_FAULT_STATUS.
 */
#ifndef MLF_BOARD_H_
#define MLF_BOARD_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Exit status after a fault. */
#define MLF_BOARD_FAULT_STATUS 112

/* End the run immediately with this exit status (0 to 255). Buffered stdio output is lost; exit() writes it first. */
void mlf_board_exit(int status) __attribute__((noreturn));

/* Print a string without stdio, which needs a few bytes of code instead of thousands, and without a newline. */
void mlf_board_puts(const char *text);

/* Print a number in decimal, without stdio. */
void mlf_board_put_decimal(long value);

#ifdef __cplusplus
}
#endif

#endif /* MLF_BOARD_H_ */
