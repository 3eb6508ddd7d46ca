/*
 * Board support for firmware on QEMU's Cortex-M boards: output and exit status through semihosting.
 *
 * A firmware is a main() that links mlf::board. Its standard output is QEMU's, main's result is QEMU's exit status,
 * open(), read(), write() and lseek() reach the host's files, and `-semihosting-config arg=...` becomes argv.
 * A fault prints its name and the registers, and ends the run with MLF_BOARD_FAULT_STATUS.
 */
#ifndef MLF_BOARD_H_
#define MLF_BOARD_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Exit status of a firmware that ended in a fault. */
#define MLF_BOARD_FAULT_STATUS 112

/* End the run with this exit status (0 to 255) at once; buffered stdio output is lost, exit() from stdlib.h keeps it. */
void mlf_board_exit(int status) __attribute__((noreturn));

/* Print a string without stdio: a few bytes of code where printf() is thousands. Nothing is added at its end. */
void mlf_board_puts(const char *text);

/* Print a number in decimal, without stdio. */
void mlf_board_put_decimal(long value);

#ifdef __cplusplus
}
#endif

#endif /* MLF_BOARD_H_ */
