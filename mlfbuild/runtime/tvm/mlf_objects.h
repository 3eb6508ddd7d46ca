/*
 * What compiled objects for Arm name so that C++ exceptions could pass through them. None do: an empty function keeps
 * the unwinder, and the heap that it takes, out of the image. Where a module has no objects, the linker drops it.
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
