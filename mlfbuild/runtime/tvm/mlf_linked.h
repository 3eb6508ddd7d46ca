/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Parameters that TVM 0.8 compiled into a module (`link-params`): its code returns their addresses by storage id.
 */
#ifndef MLF_LINKED_H_
#define MLF_LINKED_H_

#include "mlf_executor.h"

mlf_packed _lookup_linked_param;

/* The values of a storage id, in flash, or NULL if the module has none. */
static inline void *mlf_linked_parameter(int64_t storage_id)
{
    TVMValue argument, result;
    int32_t code = kTVMArgInt, result_code = kTVMNullptr;
    argument.v_int64 = storage_id;
    result.v_int64 = 0;
    return _lookup_linked_param(&argument, &code, 1, &result, &result_code, NULL) == 0 &&
                   result_code == kTVMOpaqueHandle
               ? result.v_handle
               : NULL;
}

static inline int mlf_any_missing(void *const *pointers, uint32_t count)
{
    while (count > 0 && pointers[count - 1] != NULL) {
        count--;
    }
    return count > 0;
}

#endif /* MLF_LINKED_H_ */
