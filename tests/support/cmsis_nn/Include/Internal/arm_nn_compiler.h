/* What the sources ask of the compiler: GNU C only. */
#ifndef ARM_NN_COMPILER_H
#define ARM_NN_COMPILER_H

#ifndef __STATIC_INLINE
#define __STATIC_INLINE static inline
#endif
#ifndef __STATIC_FORCEINLINE
#define __STATIC_FORCEINLINE __attribute__((always_inline)) static inline
#endif

__STATIC_FORCEINLINE int32_t arm_nn_leading_zeros(uint32_t value)
{
    return value == 0 ? 32 : __builtin_clz(value);
}

#endif /* ARM_NN_COMPILER_H */
