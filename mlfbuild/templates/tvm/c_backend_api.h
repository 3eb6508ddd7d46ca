/*
 * A TVM module with the C interface includes this and takes nothing from it. An archive that came without its runtime/
 * folder got this file from mlfbuild; TVM's own header may take its place.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include "tvm/runtime/c_runtime_api.h"

#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
