/*
 * Raspberry Pi Pico: UART0 on GPIO 0. The core runs at 12 MHz from the crystal; a product sets its PLL here, or is built
 * with the Pico SDK, whose CMake projects link mlf::digits in the same way.
 *
 * Registers and bits: RP2040 datasheet, Resets, XOSC, Clocks, GPIO and UART (Arm's PL011). A machine that emulates a PL011
 * without the rest of the chip defines BOARD_UART, the address of the UART.
 */
#include "board.h"

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#if defined(BOARD_UART)
#define UART BOARD_UART
#else
#define UART 0x40034000u
#endif
#define UARTDR REGISTER(UART + 0x00u)
#define UARTFR REGISTER(UART + 0x18u)
#define UARTIBRD REGISTER(UART + 0x24u)
#define UARTFBRD REGISTER(UART + 0x28u)
#define UARTLCR_H REGISTER(UART + 0x2Cu)
#define UARTCR REGISTER(UART + 0x30u)

enum { XOSC_HZ = 12000000, BAUD = 115200 };

#if !defined(BOARD_UART)
#define RESETS_RESET_CLEAR REGISTER(0x4000F000u)
#define RESETS_RESET_DONE REGISTER(0x4000C008u)
#define CLK_REF_CTRL REGISTER(0x40008030u)
#define CLK_REF_SELECTED REGISTER(0x40008038u)
#define CLK_SYS_CTRL REGISTER(0x4000803Cu)
#define CLK_SYS_SELECTED REGISTER(0x40008044u)
#define CLK_PERI_CTRL REGISTER(0x40008048u)
#define XOSC_CTRL REGISTER(0x40024000u)
#define XOSC_STATUS REGISTER(0x40024004u)
#define XOSC_STARTUP REGISTER(0x4002400Cu)
#define GPIO0_CTRL REGISTER(0x40014004u)

static void start_clocks_and_pins(void)
{
    const uint32_t blocks = 1u << 5 | 1u << 8 | 1u << 22; /* IO_BANK0, PADS_BANK0, UART0 */

    XOSC_STARTUP = 47;                     /* 1 ms in units of 256 cycles at 12 MHz */
    XOSC_CTRL = 0xFABu << 12 | 0xAA0u;     /* ENABLE, 1 to 15 MHz */
    while ((XOSC_STATUS & 1u << 31) == 0) { /* STABLE */
    }
    CLK_SYS_CTRL = 0; /* from the reference clock, also if a debugger starts this image after another one */
    while ((CLK_SYS_SELECTED & 1u << 0) == 0) {
    }
    CLK_REF_CTRL = 2; /* from the crystal */
    while ((CLK_REF_SELECTED & 1u << 2) == 0) {
    }
    CLK_PERI_CTRL = 1u << 11; /* ENABLE, from the system clock */
    RESETS_RESET_CLEAR = blocks;
    while ((RESETS_RESET_DONE & blocks) != blocks) {
    }
    GPIO0_CTRL = 2; /* function 2, UART0 TX */
}
#else
static void start_clocks_and_pins(void)
{
}
#endif

void board_init(void)
{
    const uint32_t divisor = (4u * XOSC_HZ + BAUD / 2u) / BAUD; /* in 64ths of 16 times the bit rate */

    start_clocks_and_pins();
    UARTIBRD = divisor >> 6;
    UARTFBRD = divisor & 63u;
    UARTLCR_H = 3u << 5 | 1u << 4; /* 8 bits, FIFO */
    UARTCR = 1u << 8 | 1u << 0;    /* TXE, UARTEN */
}

void board_put(char character)
{
    while ((UARTFR & 1u << 5) != 0) { /* TXFF */
    }
    UARTDR = (uint8_t)character;
}
