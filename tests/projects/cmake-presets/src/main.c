#include "mlf_board.h"
#include "tvmgen_alpha.h"

int main(void)
{
    static int8_t in[8];
    static int8_t out[4];
    struct tvmgen_alpha_inputs inputs = {in};
    struct tvmgen_alpha_outputs outputs = {out};

    mlf_board_puts(tvmgen_alpha_run(&inputs, &outputs) == 0 ? "alpha ran\n" : "alpha failed\n");
    return 0;
}
