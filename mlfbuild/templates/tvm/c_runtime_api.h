/*
 * What the C of a TVM module with the C interface takes of TVM's runtime: how its functions are exported. An archive
 * that came without its runtime/ folder got this file from mlfbuild; TVM's own header may take its place.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#define TVM_DLL __attribute__((visibility("default")))

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
