/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks each call of the driver, overwrites what an NPU may overwrite, and computes the part of the network with the
 * kernels for the core (stand_in_calls, which tests generate). Returns another number for each mistake.
 */
#include "ethosu_driver.h"
#include "stand_in.h"

#include <string.h>

static struct ethosu_driver driver;
static int next_call;

struct ethosu_driver *ethosu_reserve_driver(void)
{
    if (driver.reserved) {
        return NULL;
    }
    driver.reserved = 1;
    driver.calls = 0;
    return &driver;
}

void ethosu_release_driver(struct ethosu_driver *released)
{
    if (released != &driver || !driver.reserved || driver.calls != 1) {
        next_call = -1000; /* the next call fails */
    }
    driver.reserved = 0;
}

int ethosu_invoke_v3(struct ethosu_driver *used, const void *custom_data_ptr, const int custom_data_size,
    uint64_t *const base_addr, const size_t *base_addr_size, const int num_base_addr, void *user_arg)
{
    const struct stand_in_call *call = NULL;
    const uint8_t *payload = custom_data_ptr;
    int i;

    (void)user_arg;
    if (used != &driver || !driver.reserved || driver.calls++ != 0) {
        return 1;
    }
    if (((uintptr_t)custom_data_ptr & 15u) != 0u || memcmp(payload, "COP1", 4) != 0) {
        return 2;
    }
    if (num_base_addr != 3) {
        return 3;
    }
    /* The calls of a run come in the order of the network. */
    call = next_call < 0 ? NULL : &stand_in_calls[next_call];
    if (call == NULL || payload != call->stream || custom_data_size != call->stream_size) {
        return 4;
    }
    for (i = 0; i < 3; ++i) {
        if ((base_addr[i] & 15u) != 0u || base_addr[i] == 0u || base_addr_size[i] != call->sizes[i]) {
            return 5;
        }
    }
    if (base_addr[0] != (uint64_t)(uintptr_t)call->weights) {
        return 6;
    }
    if (call->own_memory == (base_addr[1] == base_addr[2])) {
        return 7;
    }
    next_call = (next_call + 1) % stand_in_count;
    if (call->own_memory) {
        memset((void *)(uintptr_t)base_addr[2], 0x5A, base_addr_size[2]);
    }
    return call->compute((uint8_t *)(uintptr_t)base_addr[1]);
}
