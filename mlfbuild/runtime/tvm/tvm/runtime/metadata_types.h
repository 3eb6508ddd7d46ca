/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The description of a module with the packed interface (TVMMetadata, version 1). */
#ifndef TVM_RUNTIME_METADATA_TYPES_H_
#define TVM_RUNTIME_METADATA_TYPES_H_

#include <inttypes.h>

#include "c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_METADATA_VERSION 1

struct TVMTensorInfo {
    const char *name;
    const int64_t *shape;
    int64_t num_shape;
    DLDataType dtype;
};

struct TVMConstantInfo {
    const char *name_hint;
    uint64_t byte_offset;
    uint64_t data_len; /* bytes of `data_bytes`, a tensor as in a .params file */
    const void *data_bytes;
};

/* Each array precedes its length; the run function takes inputs, then outputs, then pools. */
struct TVMMetadata {
    int64_t version;
    const struct TVMTensorInfo *inputs;
    int64_t num_inputs;
    const struct TVMTensorInfo *outputs;
    int64_t num_outputs;
    const struct TVMTensorInfo *workspace_pools;
    int64_t num_workspace_pools;
    const struct TVMConstantInfo *constant_pools;
    int64_t num_constant_pools;
    const char *mod_name;
};

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_METADATA_TYPES_H_ */
