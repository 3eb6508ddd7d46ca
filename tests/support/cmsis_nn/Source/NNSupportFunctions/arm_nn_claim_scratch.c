/* Scratch memory. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

bool arm_nn_claim_scratch(const cmsis_nn_context *ctx, int32_t size)
{
    if (size == 0) {
        return true;
    }
    if (ctx->buf == NULL || ctx->size < size) {
        return false;
    }
    memset(ctx->buf, 0x5a, (size_t)size);
    return true;
}
