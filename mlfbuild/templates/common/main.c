/*
 * Runs @MODULES@ and prints what comes out.
 * @EXIT_STATUS@
 */
@INCLUDES@

#define SHOWN 8 /* elements of an output that are printed */

@SHOW@

@RUN@

int main(void)
{
    unsigned wrong = 0;
@CALLS@
    printf("%s\n", wrong == 0 ? "@PASS@" : "FAIL");
    return wrong == 0 ? 0 : 1;
}
