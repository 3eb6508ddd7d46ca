/*
 * Nucleo-F446RE: the two functions of mlf_serial.h on USART2, the virtual serial port of the board's ST-LINK, for the key
 * `uart` of a target's runner. docs/runners.md describes it.
 */
#include "mlf_serial.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define RCC_AHB1ENR REGISTER(0x40023830u)
#define RCC_APB1ENR REGISTER(0x40023840u)
#define GPIOA_MODER REGISTER(0x40020000u)
#define GPIOA_AFRL REGISTER(0x40020020u)
#define USART2_SR REGISTER(0x40004400u)
#define USART2_DR REGISTER(0x40004404u)
#define USART2_BRR REGISTER(0x40004408u)
#define USART2_CR1 REGISTER(0x4000440Cu)
enum { SR_ORE = 1 << 3, SR_RXNE = 1 << 5, SR_TXE = 1 << 7, CR1_RE = 1 << 2, CR1_TE = 1 << 3, CR1_UE = 1 << 13 };

/* Runs before main(). */
__attribute__((constructor)) static void start_uart(void)
{
    RCC_AHB1ENR |= 1u << 0;                          /* GPIOA */
    RCC_APB1ENR |= 1u << 17;                         /* USART2 */
    GPIOA_MODER = (GPIOA_MODER & ~0xF0u) | 0xA0u;    /* PA2 and PA3: alternate function */
    GPIOA_AFRL = (GPIOA_AFRL & ~0xFF00u) | 0x7700u;  /* ... 7: USART2 */
    USART2_BRR = (16000000u + 115200u / 2) / 115200u; /* the core starts at 16 MHz */
    USART2_CR1 = CR1_UE | CR1_TE | CR1_RE;
}

/* The next byte that was received, or -1. */
int mlf_serial_get(void)
{
    const uint32_t status = USART2_SR; /* reading SR and then DR also clears an overrun */
    return (status & (SR_RXNE | SR_ORE)) != 0 ? (int)(USART2_DR & 0xFFu) : -1;
}

/* Send a byte; wait until there is room for it. */
void mlf_serial_put(uint8_t byte)
{
    while ((USART2_SR & SR_TXE) == 0) {
    }
    USART2_DR = byte;
}
