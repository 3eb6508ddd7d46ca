/*
 * Nucleo-F446RE: USART2 on PA2 is the virtual serial port of the board's ST-LINK. The core stays at 16 MHz, the internal
 * oscillator after reset; a product sets its PLL and the wait states of the flash here.
 *
 * Registers and bits: ST's RM0390, RCC, GPIO and USART.
 */
#include "board.h"

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define RCC_AHB1ENR REGISTER(0x40023830u)
#define RCC_APB1ENR REGISTER(0x40023840u)
#define GPIOA_MODER REGISTER(0x40020000u)
#define GPIOA_AFRL REGISTER(0x40020020u)
#define USART2_SR REGISTER(0x40004400u)
#define USART2_DR REGISTER(0x40004404u)
#define USART2_BRR REGISTER(0x40004408u)
#define USART2_CR1 REGISTER(0x4000440Cu)

enum { HSI_HZ = 16000000, BAUD = 115200 };

void board_init(void)
{
    RCC_AHB1ENR |= 1u << 0;                              /* GPIOA */
    RCC_APB1ENR |= 1u << 17;                             /* USART2 */
    (void)RCC_APB1ENR;                                   /* a clock takes two cycles to start */
    GPIOA_MODER = (GPIOA_MODER & ~(3u << 4)) | 2u << 4;  /* PA2: alternate function */
    GPIOA_AFRL = (GPIOA_AFRL & ~(0xFu << 8)) | 7u << 8;  /* PA2: function 7, USART2_TX */
    USART2_BRR = (HSI_HZ + BAUD / 2) / BAUD;
    USART2_CR1 = 1u << 13 | 1u << 3; /* UE, TE */
}

void board_put(char character)
{
    while ((USART2_SR & 1u << 7) == 0) { /* TXE */
    }
    USART2_DR = (uint8_t)character;
}
