/* No part of the library: what a checkout has beside it. */
int main(void)
{
    return 0;
}
