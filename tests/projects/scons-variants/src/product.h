#ifndef PRODUCT_H
#define PRODUCT_H

#include <stdint.h>

void print(const char *text);
void reset(void);

#endif
