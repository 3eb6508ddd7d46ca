/* One tensor behind another. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

void arm_concatenation_s8_w(const int8_t *input, const uint16_t input_x, const uint16_t input_y,
    const uint16_t input_z, const uint16_t input_w, int8_t *output, const uint32_t offset_w)
{
    const uint32_t size = (uint32_t)input_x * input_y * input_z;
    memcpy(output + offset_w * size, input, size * input_w);
}
