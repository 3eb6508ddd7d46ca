/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The descriptor of a module for the AOT executor, which TVM wrote before 0.8. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_AOT_EXECUTOR_AOT_EXECUTOR_H_
#define TVM_RUNTIME_CRT_INTERNAL_AOT_EXECUTOR_AOT_EXECUTOR_H_

#include "../../../c_backend_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t(tvm_function_t)(void *args, void *type_codes, int32_t num_args, void *out_value, void *out_type_code,
                                void *resource_handle);

typedef struct {
    uint32_t num_input_tensors;
    uint32_t num_output_tensors;
    tvm_function_t *run_func;
} tvm_model_t;

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_AOT_EXECUTOR_AOT_EXECUTOR_H_ */
