#include "sound.h"
#include "tvmgen_beta.h"

int main(void)
{
    return sound_works() && tvmgen_beta_run(0, 0) == -1 ? 0 : 1;
}
