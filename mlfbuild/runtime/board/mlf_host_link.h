/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Calls to the host without semihosting, for devices: images that are compiled with MLF_HOST_LINK.
 *
 * The operations and their argument blocks are those of semihosting. The firmware stores a call in `mlf_host_call` and
 * calls `mlf_host_stop`, on which the host has a breakpoint. The host performs the operation through its access to the
 * memory, stores the result, and lets the firmware continue.
 */
#ifndef MLF_HOST_LINK_H_
#define MLF_HOST_LINK_H_

#include <stdint.h>

struct mlf_host_call {
    uint32_t operation;
    uint32_t argument; /* address of the argument block, or of the string of SYS_WRITE0 */
    int32_t result;
};

extern volatile struct mlf_host_call mlf_host_call;

void mlf_host_stop(void);

#endif /* MLF_HOST_LINK_H_ */
