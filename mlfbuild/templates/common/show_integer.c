/* Print an output; return the number of elements that differ from `expected`, or 0 if `expected` is NULL. */
static unsigned show_@NAME@(const char *name, const @TYPE@ *values, const @TYPE@ *expected, unsigned count)
{
    unsigned wrong = 0;
    printf("%s:", name);
    for (unsigned i = 0; i < count; i++) {
        if (i < SHOWN) {
            printf(" %ld", (long)values[i]);
        }
        wrong += expected != NULL && values[i] != expected[i];
    }
    printf("%s\n", count > SHOWN ? " ..." : "");
    return wrong;
}
