/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Runs @MODULES@ and prints the outputs.
 * @EXIT_STATUS@
 */
@INCLUDES@

#define SHOWN 8 /* the number of elements of an output to print */

@SHOW@

@RUN@

int main(void)
{
    unsigned wrong = 0;
@CALLS@
    printf("%s\n", wrong == 0 ? "@PASS@" : "FAIL");
    return wrong == 0 ? 0 : 1;
}
