/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The table of a module's packed functions, in archives exported with `system-lib`. */
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

#include "../c_backend_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMFuncRegistry {
    const char *names; /* their number in two bytes, then each name with a zero byte after it, then a zero byte */
    TVMBackendPackedCFunc *funcs;
} TVMFuncRegistry;

typedef struct TVMModule {
    const TVMFuncRegistry *registry;
} TVMModule;

const TVMModule *TVMSystemLibEntryPoint(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_MODULE_H_ */
