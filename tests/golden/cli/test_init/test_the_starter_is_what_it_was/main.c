#include <stdint.h>
#include <stdio.h>

#include "tvmgen_kws_net_2.h"

int main(void)
{
    static int8_t in_t0[MLF_KWS_NET_2_T0_ELEMENTS];
    static int8_t out_t3[MLF_KWS_NET_2_T3_ELEMENTS];
    struct tvmgen_kws_net_2_inputs inputs = {.t0 = in_t0};
    struct tvmgen_kws_net_2_outputs outputs = {.t3 = out_t3};

    /* All inputs are zero so far: put real data there. */
    if (tvmgen_kws_net_2_run(&inputs, &outputs) != 0) {
        return 1;
    }
    printf("kws_net_2: arena %u bytes\n", (unsigned)TVMGEN_KWS_NET_2_WORKSPACE_SIZE);
    return 0;
}
