#include "product.h"

extern uint32_t data_start[], data_end[], data_load[], bss_start[], bss_end[], stack_top[];
int main(void);

static uintptr_t semihosting(uintptr_t operation, uintptr_t argument)
{
    register uintptr_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void print(const char *text)
{
    semihosting(0x04, (uintptr_t)text); /* SYS_WRITE0 */
}

void reset(void)
{
    const uint32_t *from = data_load;

    for (uint32_t *to = data_start; to < data_end; ++to) {
        *to = *from++;
    }
    for (uint32_t *to = bss_start; to < bss_end; ++to) {
        *to = 0;
    }
    const uintptr_t block[2] = {0x20026, (uintptr_t)main()}; /* ADP_Stopped_ApplicationExit */
    semihosting(0x20, (uintptr_t)block);                     /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[] = {(uintptr_t)stack_top, (uintptr_t)reset};
