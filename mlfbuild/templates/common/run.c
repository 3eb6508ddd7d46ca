static unsigned run_@MODULE@(void)
{
@BUFFERS@
@STRUCTS@
    unsigned wrong = 0;
@CHECKS@

@INPUTS@
    if (@FUNCTION@(@ARGUMENTS@) != 0) {
        printf("@MODULE@: the network did not run\n");
        return 1;
    }
@OUTPUTS@
    return wrong;
}
