/* The first serial port of Arm's MPS boards, without interrupts. */
#ifndef UART_H
#define UART_H

#include <stddef.h>
#include <stdint.h>

void uart_start(void);
void uart_read(void *data, size_t size);
void uart_write(const void *data, size_t size);

#endif /* UART_H */
