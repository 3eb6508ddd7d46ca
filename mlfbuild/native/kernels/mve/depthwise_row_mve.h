/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-kernels of int8 depthwise convolutions on Helium (MVE): a row of output pixels from the ring of
 * depthwise_conv2d_mve.h, in which the window of a channel has at most 16 adjacent bytes.
 *
 * A channel at a time: one VMLADAV multiplies its window with the filter. Two pixels of four channels take 8 loads and
 * 8 VMLADAV for 72 products of a 3x3 filter; the 8 outputs of the pair before are rescaled and stored meanwhile.
 */
#ifndef MLF_DEPTHWISE_ROW_MVE_H_
#define MLF_DEPTHWISE_ROW_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "requantize_mve.h"

/* A row of output pixels; assembly accesses the members by position. */
struct mlf_depthwise_row {
    int32_t zero_point;
    int32_t output_step; /* bytes from the outputs of a pair of pixels to those of the next */
    int32_t length;      /* bytes of the ring from the first pair's window to the one after the last pair's */
    const struct mlf_channels4 *channels;
    const int8_t *weights; /* of a group of four channels, `taps` bytes each */
    int32_t taps;
    const int8_t *ring; /* the first window of a group */
    int8_t *output;
    int32_t groups;
    int32_t pitch;       /* bytes from a channel of the ring to the next */
    int32_t back;        /* bytes from a single last window to the next one; 0 for an even number of pixels */
    int32_t output_back; /* and between their outputs */
    int32_t step;        /* bytes from a window to the next */
    int32_t minimum;
    int32_t maximum;
    const uint8_t *order; /* the tap of each of 16 bytes of a window */
    uint16_t scatter[8];  /* bytes from `output` to channel c of the first pixel at 2 * c, of the second after it */
};

typedef void (*mlf_depthwise_function)(const struct mlf_depthwise_row *row);

#if defined(MLF_MVE)

/* Load a window of a channel; `pointer` is advanced to the next one. */
#define MLF_DEPTHWISE_LOAD_STEP3(pointer) "vldrb.u8 q0, [" pointer "], #3\n"
#define MLF_DEPTHWISE_LOAD_STEP6(pointer) "vldrb.u8 q0, [" pointer "], #6\n"
#define MLF_DEPTHWISE_LOAD_STEP(pointer) "vldrb.u8 q0, [" pointer "]\n add " pointer ", lr\n"

/* A step that is no constant is in lr until the last sum takes its place. */
#define MLF_DEPTHWISE_LOAD_STEP3_BEGIN
#define MLF_DEPTHWISE_LOAD_STEP6_BEGIN
#define MLF_DEPTHWISE_LOAD_STEP_BEGIN "ldr lr, [sp, #48]\n"

/* The products of a pair of windows of all four channels. */
#define MLF_DEPTHWISE_SUMS(load)                                                                                       \
    load##_BEGIN load("r1") "vmladav.s8 r0, q0, q4\n" load("r1") "vmladav.s8 r8, q0, q4\n"                             \
    load("r3") "vmladav.s8 r2, q0, q5\n" load("r3") "vmladav.s8 r10, q0, q5\n"                                         \
    load("r5") "vmladav.s8 r4, q0, q6\n" load("r5") "vmladav.s8 r12, q0, q6\n"                                         \
    load("r7") "vmladav.s8 r6, q0, q7\n" load("r7") "vmladav.s8 lr, q0, q7\n"

/* The same, and in between the outputs of the pair before, which use the integer unit; CC: there are more. */
#define MLF_DEPTHWISE_BOTH(load, rounding, clamp)                                                                      \
    "vmov q3[3], q3[1], r10, lr\n" load##_BEGIN load("r1")                                                             \
    "vmov q2[2], q2[0], r0, r4\n vmladav.s8 r0, q0, q4\n vmov q2[3], q2[1], r2, r6\n"                                  \
    load("r1") "vmov q3[2], q3[0], r8, r12\n vmladav.s8 r8, q0, q4\n"                                                  \
    "vldrw.u32 q1, [sp, #144]\n ldrd r4, r6, [sp, #4]\n vadd.i32 q2, q2, q1\n"                                         \
    load("r3") "vmladav.s8 r2, q0, q5\n vadd.i32 q3, q3, q1\n"                                                         \
    load("r3") "vmladav.s8 r10, q0, q5\n" MLF_DEPTHWISE_LEFT_##rounding                                                \
    "vldrw.u32 q1, [sp, #160]\n vqrdmulh.s32 q2, q2, q1\n"                                                             \
    load("r5") "vqrdmulh.s32 q3, q3, q1\n"                                                                             \
    "vldrw.u32 q1, [sp, #176]\n add r11, r4\n"                                                                         \
    "vmladav.s8 r4, q0, q6\n" MLF_DEPTHWISE_SIGN_##rounding MLF_DEPTHWISE_SHIFT_##rounding("q2")                       \
    load("r5") "vmladav.s8 r12, q0, q6\n" MLF_DEPTHWISE_SHIFT_##rounding("q3")                                         \
    load("r7") "vqmovnb.s32 q2, q2\n vldrw.u32 q1, [sp, #192]\n cmp r1, r6\n vmladav.s8 r6, q0, q7\n"                  \
    "vqmovnt.s32 q2, q3\n vldrh.u16 q3, [sp, #64]\n vqadd.s16 q2, q2, q1\n"                                            \
    load("r7") clamp "vmladav.s8 lr, q0, q7\n vstrb.16 q2, [r11, q3]\n"

/* The outputs of the last pair. */
#define MLF_DEPTHWISE_OUTPUTS(rounding, clamp)                                                                         \
    "vmov q2[2], q2[0], r0, r4\n vldrw.u32 q1, [sp, #144]\n"                                                           \
    "vmov q2[3], q2[1], r2, r6\n vmov q3[2], q3[0], r8, r12\n vmov q3[3], q3[1], r10, lr\n"                            \
    "vadd.i32 q2, q2, q1\n ldr r4, [sp, #140]\n vadd.i32 q3, q3, q1\n" MLF_DEPTHWISE_LEFT_##rounding                   \
    "vldrw.u32 q1, [sp, #160]\n vqrdmulh.s32 q2, q2, q1\n vqrdmulh.s32 q3, q3, q1\n"                                   \
    "vldrw.u32 q1, [sp, #176]\n add r11, r4\n" MLF_DEPTHWISE_SIGN_##rounding                                           \
    MLF_DEPTHWISE_SHIFT_##rounding("q2") MLF_DEPTHWISE_SHIFT_##rounding("q3")                                          \
    "vqmovnb.s32 q2, q2\n vldrw.u32 q1, [sp, #192]\n vldrh.u16 q0, [sp, #64]\n vqmovnt.s32 q2, q3\n"                   \
    "ldr r0, [sp, #32]\n subs r0, #1\n str r0, [sp, #32]\n"                                                            \
    "vqadd.s16 q2, q2, q1\n" clamp "vstrb.16 q2, [r11, q0]\n"

/* Roundings other than RELU use q0 for what they add to negative sums. */
#define MLF_DEPTHWISE_LEFT_RELU
#define MLF_DEPTHWISE_SIGN_RELU
#define MLF_DEPTHWISE_SHIFT_RELU(x) "vrshl.s32 " x ", " x ", q1\n"
#define MLF_DEPTHWISE_LEFT_RIGHT
#define MLF_DEPTHWISE_SIGN_RIGHT
#define MLF_DEPTHWISE_SHIFT_RIGHT(x)                                                                                   \
    "vand q0, " x ", q1\n vshr.s32 q0, q0, #31\n vadd.i32 " x ", " x ", q0\n" MLF_DEPTHWISE_SHIFT_RELU(x)
#define MLF_DEPTHWISE_LEFT_ANY                                                                                         \
    "vldrw.u32 q1, [sp, #176]\n vmov.i32 q0, #0\n vmax.s32 q1, q1, q0\n vshl.s32 q2, q2, q1\n vshl.s32 q3, q3, q1\n"
#define MLF_DEPTHWISE_SIGN_ANY "vldrw.u32 q0, [sp, #208]\n vmin.s32 q1, q1, q0\n"
#define MLF_DEPTHWISE_SHIFT_ANY MLF_DEPTHWISE_SHIFT_RIGHT

/* The clamp of an activation; if its range is that of int8, VQMOVN already clamps. */
#define MLF_DEPTHWISE_BOUNDS                                                                                           \
    "vldrh.u16 q1, [sp, #96]\n vmax.s16 q2, q2, q1\n"                                                                  \
    "vldrh.u16 q1, [sp, #112]\n vmin.s16 q2, q2, q1\n"
#define MLF_DEPTHWISE_ALL "vqmovnb.s16 q2, q2\n"

/*
 * r1 r3 r5 r7 point to the windows of four channels, q4 to q7 hold their weights, r11 points to the outputs before the
 * last ones. On the stack: the struct, whose `length` becomes the end of the group; at 80 the order of the taps, at 96
 * and 112 the clamp, at 128 the remainder of `back`, at 132 `length`, at 136 r11, at 140 the bytes from the outputs
 * before the last ones to these, at 144 biases, multipliers and shifts of the channels, at 192 the zero point, at 208
 * zeros for ANY, at 224 what is at 140 with a single last pixel. Two statements, as C99 limits the length of literals.
 */
#define MLF_DEPTHWISE(name, load, rounding, clamp)                                                                     \
    MLF_NAKED void name(const struct mlf_depthwise_row *row MLF_UNUSED)                                                \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #232\n"                                                                             \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"   \
                "vldrh.u16 q4, [r0, #64]\n"                                                                            \
                "mov r7, sp\n"                                                                                         \
                "vstrw.32 q0, [r7]\n vstrw.32 q1, [r7, #16]\n vstrw.32 q2, [r7, #32]\n vstrw.32 q3, [r7, #48]\n"       \
                "vstrw.32 q4, [r7, #64]\n"                                                                             \
                "ldrd r1, r2, [sp, #52]\n ldr r3, [sp, #60]\n ldr r4, [sp]\n"                                          \
                "vdup.16 q0, r1\n vdup.16 q1, r2\n vldrb.u8 q2, [r3]\n vdup.16 q3, r4\n vmov.i32 q4, #0\n"             \
                "vstrw.32 q2, [r7, #80]\n vstrw.32 q0, [r7, #96]\n vstrw.32 q1, [r7, #112]\n"                          \
                "vstrw.32 q3, [r7, #192]\n vstrw.32 q4, [r7, #208]\n"                                                  \
                "ldr r1, [sp, #4]\n ldr r2, [sp, #44]\n subs r1, r2\n str r1, [sp, #224]\n"                            \
                "ldr r1, [sp, #8]\n str r1, [sp, #132]\n"                                                              \
                "ldr r1, [sp, #20]\n vctp.8 r1\n"                                                                      \
                "1: ldrd r0, r2, [sp, #16]\n"                                                                          \
                "vldrb.u8 q3, [sp, #80]\n"                                                                             \
                "ldr r1, [sp, #12]\n vldrw.u32 q0, [r1], #16\n vldrw.u32 q1, [r1], #16\n vldrb.s32 q2, [r1], #4\n"     \
                "str r1, [sp, #12]\n"                                                                                  \
                "vstrw.32 q0, [sp, #144]\n vstrw.32 q1, [sp, #160]\n vstrw.32 q2, [sp, #176]\n"                        \
                "adds r4, r0, r2\n adds r6, r4, r2\n add r8, r6, r2\n add r10, r8, r2\n"                               \
                "vpstttt\n"                                                                                            \
                "vldrbt.u8 q4, [r0, q3]\n vldrbt.u8 q5, [r4, q3]\n vldrbt.u8 q6, [r6, q3]\n vldrbt.u8 q7, [r8, q3]\n"  \
                "str r10, [sp, #16]\n"                                                                                 \
                "ldrd r1, r11, [sp, #24]\n ldrd r0, r2, [sp, #36]\n str r2, [sp, #128]\n"                              \
                "adds r3, r1, r0\n adds r5, r3, r0\n adds r7, r5, r0\n adds r0, r7, r0\n add r2, r11, #4\n"            \
                "strd r0, r2, [sp, #24]\n"                                                                             \
                "ldr r0, [sp, #132]\n add r0, r1\n ldr r2, [sp, #4]\n sub r11, r2\n strd r2, r0, [sp, #4]\n"           \
                "str r2, [sp, #140]\n ldr r2, [sp, #48]\n add r2, r1, r2, lsl #1\n cmp r2, r0\n");                     \
        __asm__(MLF_DEPTHWISE_SUMS(load) "bcs 3f\n"                                                                    \
                "2:\n" MLF_DEPTHWISE_BOTH(load, rounding, clamp) "bcc 2b\n"                                            \
                "3: str r11, [sp, #136]\n ldr r11, [sp, #128]\n cmp r11, #0\n beq 4f\n" /* a single last pixel? */     \
                "subs r1, r11\n subs r3, r11\n subs r5, r11\n subs r7, r11\n" /* together with the one before */       \
                "mov r11, #0\n str r11, [sp, #128]\n ldr r11, [sp, #224]\n str r11, [sp, #140]\n"                      \
                "ldr r11, [sp, #136]\n b 2b\n"                                                                         \
                "4: ldr r11, [sp, #136]\n" MLF_DEPTHWISE_OUTPUTS(rounding, clamp) "bne 1b\n"                           \
                "add sp, #232\n" MLF_LEAVE);                                                                           \
    }

#else

/* The same in C, for all steps and roundings. */
MLF_KERNEL uint32_t mlf_depthwise_window(const struct mlf_depthwise_row *row, const int8_t *window,
                                         const int8_t *weights)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < row->taps; i++) {
        sum += (uint32_t)(window[i] * weights[row->order[i]]);
    }
    return sum;
}

MLF_SHARED void mlf_depthwise_portable(const struct mlf_depthwise_row *row)
{
    const int32_t pixels = 2 * (row->length / (2 * row->step)) + (row->back != 0 ? 1 : 0);
    for (int32_t c = 0; c < 4 * row->groups; c++) {
        for (int32_t x = 0; x < pixels; x++) {
            const uint32_t sum = mlf_depthwise_window(row, row->ring + c * row->pitch + x * row->step,
                                                      row->weights + c * row->taps);
            row->output[c + row->scatter[1] * x] = mlf_requantize_lane(sum, &row->channels[c / 4], c % 4,
                                                                       row->zero_point, row->minimum, row->maximum);
        }
    }
}

#define MLF_DEPTHWISE(name, load, rounding, clamp)                                                                     \
    MLF_KERNEL void name(const struct mlf_depthwise_row *row)                                                          \
    {                                                                                                                  \
        mlf_depthwise_portable(row);                                                                                   \
    }

#endif /* MLF_MVE */

MLF_DEPTHWISE(mlf_depthwise_step3_all, MLF_DEPTHWISE_LOAD_STEP3, RELU, MLF_DEPTHWISE_ALL)
MLF_DEPTHWISE(mlf_depthwise_step3_relu, MLF_DEPTHWISE_LOAD_STEP3, RELU, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step3_right, MLF_DEPTHWISE_LOAD_STEP3, RIGHT, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step3_any, MLF_DEPTHWISE_LOAD_STEP3, ANY, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step6_all, MLF_DEPTHWISE_LOAD_STEP6, RELU, MLF_DEPTHWISE_ALL)
MLF_DEPTHWISE(mlf_depthwise_step6_relu, MLF_DEPTHWISE_LOAD_STEP6, RELU, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step6_right, MLF_DEPTHWISE_LOAD_STEP6, RIGHT, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step6_any, MLF_DEPTHWISE_LOAD_STEP6, ANY, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step_all, MLF_DEPTHWISE_LOAD_STEP, RELU, MLF_DEPTHWISE_ALL)
MLF_DEPTHWISE(mlf_depthwise_step_relu, MLF_DEPTHWISE_LOAD_STEP, RELU, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step_right, MLF_DEPTHWISE_LOAD_STEP, RIGHT, MLF_DEPTHWISE_BOUNDS)
MLF_DEPTHWISE(mlf_depthwise_step_any, MLF_DEPTHWISE_LOAD_STEP, ANY, MLF_DEPTHWISE_BOUNDS)

#endif /* MLF_DEPTHWISE_ROW_MVE_H_ */
