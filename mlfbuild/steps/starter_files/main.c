#include <stdint.h>
#include <stdio.h>

#include "tvmgen_@MODEL@.h"

int main(void)
{
@RUN@
    printf("@MODEL@: arena %u bytes\n", (unsigned)TVMGEN_@MODEL_UPPER@_WORKSPACE_SIZE);
    return 0;
}
