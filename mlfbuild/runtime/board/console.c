/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
#include <string.h>
#include <unistd.h>

#include "mlf_board.h"
#include "semihosting.h"

void mlf_board_exit(int status)
{
    semihosting_exit(status);
}

void mlf_board_puts(const char *text)
{
    (void)write(STDOUT_FILENO, text, strlen(text));
}

void mlf_board_put_decimal(long value)
{
    char text[3 * sizeof value + 2]; /* three digits per byte, a sign and the terminating zero */
    char *at = text + sizeof text - 1;
    unsigned long left = value < 0 ? 0UL - (unsigned long)value : (unsigned long)value;
    *at = '\0';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (value < 0) {
        *--at = '-';
    }
    mlf_board_puts(at);
}
