/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Symbols to which compiled objects for Arm refer so that C++ exceptions can pass through them. No exception occurs, so
 * an empty function is sufficient; it keeps the unwinder, and its heap, out of the image. If a module has no objects,
 * the linker drops the function.
 */
#ifndef MLF_OBJECTS_H_
#define MLF_OBJECTS_H_

#include "tvm/runtime/c_runtime_api.h"

#ifdef __arm__

#define __aeabi_unwind_cpp_pr0 MLF_OF_MODULE(mlf_no_unwinding)
#define __aeabi_unwind_cpp_pr1 MLF_OF_MODULE(mlf_no_unwinding)
#define __aeabi_unwind_cpp_pr2 MLF_OF_MODULE(mlf_no_unwinding)

void __aeabi_unwind_cpp_pr0(void);
void __aeabi_unwind_cpp_pr0(void)
{
}

#endif

#endif /* MLF_OBJECTS_H_ */
