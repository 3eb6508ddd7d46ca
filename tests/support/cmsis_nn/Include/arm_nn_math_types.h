/* Instructions of the core, and bounds of types. */
#ifndef ARM_NN_MATH_TYPES_H
#define ARM_NN_MATH_TYPES_H

#include <limits.h>
#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_DSP) && !defined(ARM_MATH_DSP)
#define ARM_MATH_DSP 1
#endif
#if defined(__ARM_FEATURE_MVE) && !defined(ARM_MATH_MVEI)
#define ARM_MATH_MVEI 1
#endif

#define NN_Q31_MAX INT32_MAX
#define NN_Q31_MIN INT32_MIN
#define NN_Q7_MAX ((int8_t)127)
#define NN_Q7_MIN ((int8_t)-128)

#endif /* ARM_NN_MATH_TYPES_H */
