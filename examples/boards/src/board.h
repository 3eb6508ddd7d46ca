/* What a board of this example provides; boards/<name>/board.c implements it. */
#ifndef BOARD_H
#define BOARD_H

/* Prepare the clock and the serial port: 115200 bits per second, 8 data bits, no parity. */
void board_init(void);

/* Send a character over the serial port, when the one before it has been sent. */
void board_put(char character);

#endif /* BOARD_H */
