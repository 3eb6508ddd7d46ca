/* The printf() of newlib-nano has no %f. */
static void print_@NAME@(@TYPE@ value)
{
    const @TYPE@ size = @ABS@(value);
    if (size < 4e6@F@) {
        const unsigned long thousandths = (unsigned long)(size * 1000 + 0.5@F@);
        printf(" %s%lu.%03lu", value < 0 ? "-" : "", thousandths / 1000, thousandths % 1000);
    } else {
        printf(" %s", value != value ? "nan" : value < 0 ? "< -4e6" : "> 4e6");
    }
}

/* Print an output; return the number of elements that differ from `expected`, or 0 if `expected` is NULL. */
static unsigned show_@NAME@(const char *name, const @TYPE@ *values, const @TYPE@ *expected, unsigned count)
{
    @TYPE@ largest = 0;
    unsigned wrong = 0;
    for (unsigned i = 0; expected != NULL && i < count; i++) {
        largest = @MAX@(largest, @ABS@(expected[i]));
    }
    printf("%s:", name);
    for (unsigned i = 0; i < count; i++) {
        if (i < SHOWN) {
            print_@NAME@(values[i]);
        }
        wrong += expected != NULL && !(@ABS@(values[i] - expected[i]) <= 1e-5@F@ * largest);
    }
    printf("%s\n", count > SHOWN ? " ..." : "");
    return wrong;
}
