/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A command stream of an Arm Ethos-U, run by Arm's driver (ethos-u-core-driver, 22.05 or later).
 *
 * The stream addresses three regions by their numbers: constants, working memory, and the NPU's own memory, all aligned
 * to 16 bytes. If ethosu_init() was given memory, the driver replaces the address of the last one by it. The driver
 * cleans and invalidates the data cache over the regions, by ethosu_flush_dcache() and ethosu_invalidate_dcache(), which
 * do nothing unless the firmware defines them. The call waits until the NPU has finished.
 */
#ifndef MLF_ETHOS_U_H_
#define MLF_ETHOS_U_H_

#include "compiler.h"

#include <ethosu_driver.h>
#include <stddef.h>

#define MLF_ETHOS_U_REGIONS 3

struct mlf_ethos_u_regions {
    const void *address[MLF_ETHOS_U_REGIONS];
    size_t size[MLF_ETHOS_U_REGIONS];
};

/* Return 0, or another number if no NPU could be reserved or the driver reports an error. */
MLF_KERNEL int32_t mlf_ethos_u(const void *stream, int size, const struct mlf_ethos_u_regions *regions)
{
    uint64_t address[MLF_ETHOS_U_REGIONS]; /* the driver may change them */
    struct ethosu_driver *driver;
    int result;
    int i;

    for (i = 0; i < MLF_ETHOS_U_REGIONS; ++i) {
        address[i] = (uint64_t)(uintptr_t)regions->address[i];
    }
    driver = ethosu_reserve_driver();
#ifndef ETHOSU_MULTI_VARIANT /* with several kinds of NPUs, the driver finds one in ethosu_invoke_v3() */
    if (driver == NULL) {
        return -1;
    }
#endif
    result = ethosu_invoke_v3(driver, stream, size, address, regions->size, MLF_ETHOS_U_REGIONS, NULL);
    ethosu_release_driver(driver);
    return result == 0 ? 0 : -1;
}

#endif /* MLF_ETHOS_U_H_ */
