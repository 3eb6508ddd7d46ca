#include "product.h"
#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"

#if !defined(PRODUCT) || LEVEL != 2
#error "the product's own definitions are lost"
#endif

int main(void)
{
    static int8_t in[8];
    static int8_t alpha[4];
    static int8_t beta[4];
    struct tvmgen_alpha_inputs alpha_inputs = {in};
    struct tvmgen_alpha_outputs alpha_outputs = {alpha};
    struct tvmgen_beta_inputs beta_inputs = {in};
    struct tvmgen_beta_outputs beta_outputs = {beta};
    int status = tvmgen_alpha_run(&alpha_inputs, &alpha_outputs);

    status |= tvmgen_beta_run(&beta_inputs, &beta_outputs);
    print(status == 0 ? "alpha and beta ran\n" : "failed\n");
    return status;
}
