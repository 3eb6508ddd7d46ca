/* No value below 0 or above 6. */
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

void arm_relu6_s8(int8_t *data, uint16_t size)
{
    for (uint16_t i = 0; i < size; i++) {
        data[i] = (int8_t)CLAMP(data[i], 6, 0);
    }
}
