#include "uart.h"

#if defined(__ARM_FEATURE_MVE)
#define UART 0x49303000u /* MPS3 AN547 */
#else
#define UART 0x40004000u /* MPS2 AN386 */
#endif

static volatile uint32_t *const registers = (volatile uint32_t *)UART;
enum { DATA, STATE, CONTROL, STATUS, DIVISOR };

void uart_start(void)
{
    registers[DIVISOR] = 16;
    registers[CONTROL] = 3; /* transmit and receive */
}

void uart_read(void *data, size_t size)
{
    for (uint8_t *to = data; size > 0u; size--) {
        while ((registers[STATE] & 2u) == 0u) {
        }
        *to++ = (uint8_t)registers[DATA];
    }
}

void uart_write(const void *data, size_t size)
{
    for (const uint8_t *from = data; size > 0u; size--) {
        while ((registers[STATE] & 1u) != 0u) {
        }
        registers[DATA] = *from++;
    }
}
