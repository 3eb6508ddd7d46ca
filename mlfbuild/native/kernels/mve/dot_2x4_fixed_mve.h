/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The micro-tile 2x4 of dot_2x4_mve.h for windows with a fixed number of vectors in a row; it computes several lines.
 *
 * In the two cycles of a VMLADAVA another instruction can begin, and a step has eight of them and six loads. So the
 * rescaling of the four channels before, pointers and jumps are spread over the two spaces that each step has left. The
 * last step ends with the sums that are gathered last, and the jump to the next channels is before its last products.
 * Four channels of two pixels take 16 cycles for each step and 8 to 10 more, if there are at least nine steps.
 *
 * In names, MIXED1, MIXED2, VECTORS1 to VECTORS4, ROWS3, ROWS6 and ROWS12 have as many vectors in a row; ROWS12 has any
 * number of rows, ROWS3 and ROWS6 have three. NEAR3 is ROWS3 for two pixels whose windows begin 16 bytes apart, so that
 * they share vectors. The other words are those of dot_2x4_mve.h; RIGHT does not include shifts by 0.
 */
#ifndef MLF_DOT_2X4_FIXED_MVE_H_
#define MLF_DOT_2X4_FIXED_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "dot_2x4_mve.h"

#if defined(MLF_MVE)

/*
 * Assembler macros, because a string of C99 has at most 4,095 characters (5.2.4.1). A step begins with the last two
 * products of the step before it. `begin` is vmladav if those are the first ones of these channels.
 */
#define MLF_DOT_2X4_ROWS_STEP                                                                                          \
    ".macro mlf_step one, two, second=r5, begin=vmladava\n \\begin\\().s8 r6, q0, q3\n"                                \
    "vldrb.u8 q0, [r3], #16\n \\begin\\().s8 lr, q1, q3\n"                                                             \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r0, q0, q2\n"                                                                \
    "vldrb.u8 q1, [\\second], #16\n vmladava.s8 r8, q1, q2\n"                                                          \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r2, q0, q3\n"                                                                \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r10, q1, q3\n"                                                               \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r4, q0, q2\n"                                                                \
    "\\one\n vmladava.s8 r12, q1, q2\n \\two\n .endm\n"
/* The second and third step of a row of NEAR3: the second pixel of one step is the first pixel of the next. */
#define MLF_DOT_2X4_NEAR_STEP                                                                                          \
    ".macro mlf_near x, y, one, two, three, begin=vmladava\n \\begin\\().s8 r6, \\y, q3\n"                             \
    "vldrb.u8 \\y, [r3], #16\n \\begin\\().s8 lr, \\x, q3\n"                                                           \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r0, \\x, q2\n"                                                               \
    "\\one\n vmladava.s8 r8, \\y, q2\n"                                                                                \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r2, \\x, q3\n"                                                               \
    "vldrb.u8 q2, [r1], #16\n vmladava.s8 r10, \\y, q3\n"                                                              \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r4, \\x, q2\n"                                                               \
    "\\two\n vmladava.s8 r12, \\y, q2\n \\three\n .endm\n"
/* What is left of the last step, and the first loads of the next channels. */
#define MLF_DOT_2X4_PRODUCT6 "vmladava.s8 r6, q0, q3\n"
#define MLF_DOT_2X4_PRODUCT7 "vmladava.s8 lr, q1, q3\n"
#define MLF_DOT_2X4_NEXT_ROW                                                                                           \
    "2: vldrb.u8 q2, [r1], #32\n" MLF_DOT_2X4_PRODUCT7 "vldrb.u8 q0, [r3], #16\n 3: "
#define MLF_DOT_2X4_NEXT                                                                                               \
    "2: " MLF_DOT_2X4_PRODUCT6 "vldrb.u8 q2, [r1], #32\n" MLF_DOT_2X4_PRODUCT7 "vldrb.u8 q0, [r3], #16\n 3: "
/* The pairs that are left are loaded behind the last channels of one. */
#define MLF_DOT_2X4_COUNT "ldr r1, [sp, #8]\n"
#define MLF_DOT_2X4_REST MLF_DOT_2X4_PRODUCT6 MLF_DOT_2X4_COUNT MLF_DOT_2X4_PRODUCT7
/* The first step after its first two loads; it gathers the sums before it begins new ones. */
#define MLF_DOT_2X4_ROWS_FIRST(second)                                                                                 \
    "vmladav.s8 r0, q0, q2\n vldrb.u8 q3, [r1], #-16\n vmladav.s8 r4, q0, q3\n"                                        \
    "vldrb.u8 q1, [" second "], #16\n vmov q5[2], q5[0], r8, r12\n vmladav.s8 r8, q1, q2\n"                            \
    "vmov q4[3], q4[1], r2, r6\n vmladav.s8 r12, q1, q3\n"                                                             \
    "vldrb.u8 q2, [r1], #32\n vmladav.s8 r2, q0, q2\n"                                                                 \
    "vmov q5[3], q5[1], r10, lr\n vmladav.s8 r10, q1, q2\n vldrb.u8 q3, [r1], #16\n"
/* The last step after the loads of pixels, and the jump to the next channels. */
#define MLF_DOT_2X4_ROWS_LAST(rewind)                                                                                  \
    "vldrb.u8 q2, [r1], #32\n vmladava.s8 r0, q0, q2\n" rewind "vmladava.s8 r8, q1, q2\n"                              \
    "vldrb.u8 q3, [r1], #-16\n vmladava.s8 r4, q0, q3\n"                                                               \
    "vldrb.u8 q2, [r1], #32\n vmladava.s8 r12, q1, q3\n"                                                               \
    "vldrb.u8 q3, [r1], #16\n vmladava.s8 r2, q0, q2\n"                                                                \
    "vmov q4[2], q4[0], r0, r4\n vmladava.s8 r10, q1, q2\n bne 2b\n" MLF_DOT_2X4_REST

/* The rescaling in the order of its parts; ANY rounds all at once, with q7. */
#define MLF_DOT_2X4_BIAS "vldrw.u32 q6, [r7], #16;"
#define MLF_DOT_2X4_BIAS4 "vadd.i32 q4, q4, q6;"
#define MLF_DOT_2X4_BIAS5 "vadd.i32 q5, q5, q6;"
#define MLF_DOT_2X4_FACTOR_RELU "vldrw.u32 q6, [r7], #16;"
#define MLF_DOT_2X4_FACTOR_RIGHT MLF_DOT_2X4_FACTOR_RELU
#define MLF_DOT_2X4_FACTOR_ANY                                                                                         \
    "vldrb.s32 q6, [r7, #16]; vmov.i32 q7, #0; vmax.s32 q6, q6, q7; vshl.s32 q4, q4, q6; vshl.s32 q5, q5, q6;"         \
    MLF_DOT_2X4_FACTOR_RELU
#define MLF_DOT_2X4_SCALE(between) "vqrdmulh.s32 q4, q4, q6;" between "vqrdmulh.s32 q5, q5, q6;"
#define MLF_DOT_2X4_SIGN4_RELU "vldrb.s32 q6, [r7], #4;" /* the shifts, because signs are of no interest */
#define MLF_DOT_2X4_ROUND4_RELU
#define MLF_DOT_2X4_SIGN5_RELU
#define MLF_DOT_2X4_ROUND5_RELU
#define MLF_DOT_2X4_SHIFT_RELU
#define MLF_DOT_2X4_SIGN4_RIGHT "vshr.s32 q6, q4, #31;"
#define MLF_DOT_2X4_ROUND4_RIGHT "vadd.i32 q4, q4, q6;"
#define MLF_DOT_2X4_SIGN5_RIGHT "vshr.s32 q6, q5, #31;"
#define MLF_DOT_2X4_ROUND5_RIGHT "vadd.i32 q5, q5, q6;"
#define MLF_DOT_2X4_SHIFT_RIGHT "vldrb.s32 q6, [r7], #4;"
#define MLF_DOT_2X4_SIGN4_ANY
#define MLF_DOT_2X4_ROUND4_ANY
#define MLF_DOT_2X4_SIGN5_ANY
#define MLF_DOT_2X4_ROUND5_ANY
#define MLF_DOT_2X4_SHIFT_ANY                                                                                          \
    "vldrb.s32 q6, [r7], #4; vmov.i32 q7, #0; vmin.s32 q6, q6, q7; vand q7, q4, q6; vshr.s32 q7, q7, #31;"             \
    "vadd.i32 q4, q4, q7; vand q7, q5, q6; vshr.s32 q7, q7, #31; vadd.i32 q5, q5, q7; vldrh.u16 q7, [sp, #64];"
#define MLF_DOT_2X4_SHIFT4 "vrshl.s32 q4, q4, q6;"
#define MLF_DOT_2X4_SHIFT5 "vrshl.s32 q5, q5, q6;"
#define MLF_DOT_2X4_NARROW4 "vqmovnb.s32 q4, q4;"
#define MLF_DOT_2X4_NARROW5 "vqmovnt.s32 q4, q5;"
#define MLF_DOT_2X4_OFFSET "vldrh.u16 q6, [sp, #120];"
#define MLF_DOT_2X4_MOVE "vqadd.s16 q4, q4, q6;"
#define MLF_DOT_2X4_BYTES_ALL "vqmovnb.s16 q4, q4;"
#define MLF_DOT_2X4_BYTES_BOUNDS                                                                                       \
    "vldrh.u16 q6, [sp, #136]; vmax.s16 q4, q4, q6; vldrh.u16 q6, [sp, #152]; vmin.s16 q4, q4, q6;"
#define MLF_DOT_2X4_PUT "vstrb.16 q4, [r11, q7];"
/* The flags are those of the last comparison, of weights or of the number of pairs: C is set for a new pair. */
#define MLF_DOT_2X4_PUT_FIRST "bhs 7f;" MLF_DOT_2X4_PUT "9:"

/* Spaces of steps. */
#define MLF_DOT_2X4_TWO(one, two) "mlf_step \"" one "\", \"" two "\"\n"
#define MLF_DOT_2X4_STEP2 "mlf_step \"" MLF_DOT_2X4_BIAS "\", \"" MLF_DOT_2X4_BIAS4 "\", begin=vmladav\n"
#define MLF_DOT_2X4_THREE(x, y, one, two, three) "mlf_near " x "," y ",\"" one "\",\"" two "\",\"" three "\"\n"

/* While r11 has the bytes between rows, the outputs are at sp + 84. */
#define MLF_DOT_2X4_SUM_ROWS3(rounding, clamp)                                                                         \
    MLF_DOT_2X4_NEXT MLF_DOT_2X4_ROWS_FIRST("r5") MLF_DOT_2X4_STEP2                                                    \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_BIAS5 MLF_DOT_2X4_FACTOR_##rounding, "add r3, r11; add r5, r11")                       \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SCALE("") MLF_DOT_2X4_SIGN4_##rounding,                                                \
                    MLF_DOT_2X4_ROUND4_##rounding MLF_DOT_2X4_SIGN5_##rounding)                                        \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_ROUND5_##rounding MLF_DOT_2X4_SHIFT_##rounding, MLF_DOT_2X4_SHIFT4 MLF_DOT_2X4_SHIFT5) \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_NARROW4 MLF_DOT_2X4_OFFSET, MLF_DOT_2X4_NARROW5 "add r3, r11; add r5, r11")            \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_MOVE "ldr r11, [sp, #84]", MLF_DOT_2X4_BYTES_##clamp "add r11, #4")                    \
    MLF_DOT_2X4_TWO("str r11, [sp, #84];" MLF_DOT_2X4_PUT_FIRST "ldr r11, [sp, #36]",                                  \
                    "cmp r1, r11; ldr r11, [sp, #20]")                                                                 \
    MLF_DOT_2X4_END_OF_ROWS
#define MLF_DOT_2X4_END_OF_ROWS                                                                                        \
    "vmladava.s8 r6, q0, q3\n vldrb.u8 q0, [r3]\n vmladava.s8 lr, q1, q3\n"                                            \
    MLF_DOT_2X4_ROWS_LAST("vldrb.u8 q1, [r5]\n ldrd r3, r5, [sp]\n")
#define MLF_DOT_2X4_SUM_ROWS6(rounding, clamp)                                                                         \
    MLF_DOT_2X4_NEXT MLF_DOT_2X4_ROWS_FIRST("r5") MLF_DOT_2X4_STEP2                                                    \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_BIAS5, MLF_DOT_2X4_FACTOR_##rounding)                                                  \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SCALE("") MLF_DOT_2X4_SIGN4_##rounding, MLF_DOT_2X4_ROUND4_##rounding)                 \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SIGN5_##rounding, MLF_DOT_2X4_ROUND5_##rounding)                                       \
    "mlf_step \"add r3, r11\", \"add r5, r11\"\n"                                                                      \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SHIFT_##rounding, MLF_DOT_2X4_SHIFT4)                                                  \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SHIFT5, MLF_DOT_2X4_NARROW4) MLF_DOT_2X4_TWO(MLF_DOT_2X4_NARROW5, MLF_DOT_2X4_OFFSET)  \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_MOVE, MLF_DOT_2X4_BYTES_##clamp)                                                       \
    "mlf_step\n mlf_step \"add r3, r11\", \"add r5, r11\"\n"                                                           \
    "mlf_step \"ldr r11, [sp, #84]\", \"add r11, #4\"\n" MLF_DOT_2X4_TWO("str r11, [sp, #84]", MLF_DOT_2X4_PUT_FIRST)  \
    "mlf_step \"ldr r11, [sp, #36]\"\n mlf_step\n mlf_step \"cmp r1, r11\", \"ldr r11, [sp, #20]\"\n"                  \
    MLF_DOT_2X4_END_OF_ROWS
/* In the loop over further rows, r7 counts them and r11 has the bytes between them; sp + 80 has both pointers. */
#define MLF_DOT_2X4_SUM_ROWS12(rounding, clamp)                                                                        \
    MLF_DOT_2X4_NEXT_ROW MLF_DOT_2X4_ROWS_FIRST("r5") MLF_DOT_2X4_STEP2                                                \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_BIAS5, MLF_DOT_2X4_FACTOR_##rounding)                                                  \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SCALE("add r11, #4;") MLF_DOT_2X4_SIGN4_##rounding, MLF_DOT_2X4_ROUND4_##rounding)     \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SIGN5_##rounding, MLF_DOT_2X4_ROUND5_##rounding)                                       \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SHIFT_##rounding, MLF_DOT_2X4_SHIFT4)                                                  \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_SHIFT5, MLF_DOT_2X4_NARROW4) MLF_DOT_2X4_TWO(MLF_DOT_2X4_NARROW5, MLF_DOT_2X4_OFFSET)  \
    MLF_DOT_2X4_TWO(MLF_DOT_2X4_MOVE, MLF_DOT_2X4_BYTES_##clamp) MLF_DOT_2X4_TWO(MLF_DOT_2X4_PUT_FIRST, "")            \
    "mlf_step \"strd r7, r11, [sp, #80]\", \"ldrd r7, r11, [sp, #16]\"\n mlf_step \"add r3, r11\", \"add r5, r11\"\n"  \
    "4: .rept 10\n mlf_step\n .endr\n mlf_step \"subs r7, #1\"\n mlf_step \"add r3, r11; add r5, r11\", \"bne 4b\"\n"  \
    "vmladava.s8 r6, q0, q3\n vmov q4[2], q4[0], r0, r4\n ldr r3, [sp, #36]\n ldrd r7, r11, [sp, #80]\n"               \
    "cmp r1, r3\n ldrd r3, r5, [sp]\n bne 2b\n"                                                                        \
    MLF_DOT_2X4_COUNT MLF_DOT_2X4_PRODUCT7
/* r5 has the bytes between rows. */
#define MLF_DOT_2X4_SUM_NEAR3(rounding, clamp)                                                                         \
    MLF_DOT_2X4_NEXT MLF_DOT_2X4_ROWS_FIRST("r3")                                                                      \
    "mlf_near q1,q0,\"" MLF_DOT_2X4_BIAS "\",\"" MLF_DOT_2X4_BIAS4 "\",\"" MLF_DOT_2X4_BIAS5 "\",begin=vmladav\n"      \
    MLF_DOT_2X4_THREE("q0", "q1", MLF_DOT_2X4_FACTOR_##rounding,                                                       \
                      "add r11, #4;" MLF_DOT_2X4_SCALE("add r3, r5;") MLF_DOT_2X4_SIGN4_##rounding,                    \
                      MLF_DOT_2X4_ROUND4_##rounding)                                                                   \
    "mlf_step \"" MLF_DOT_2X4_SIGN5_##rounding "\",\"" MLF_DOT_2X4_ROUND5_##rounding "\",r3\n"                         \
    MLF_DOT_2X4_THREE("q1", "q0", MLF_DOT_2X4_SHIFT_##rounding, MLF_DOT_2X4_SHIFT4, MLF_DOT_2X4_SHIFT5)                \
    MLF_DOT_2X4_THREE("q0", "q1", MLF_DOT_2X4_NARROW4, MLF_DOT_2X4_NARROW5, "add r3, r5")                              \
    "mlf_step \"" MLF_DOT_2X4_OFFSET "\",\"" MLF_DOT_2X4_MOVE "\",r3\n"                                                \
    MLF_DOT_2X4_THREE("q1", "q0", MLF_DOT_2X4_BYTES_##clamp, "ldr r5, [sp, #36];" MLF_DOT_2X4_PUT_FIRST,               \
                      "cmp r1, r5")                                                                                    \
    "vmladava.s8 r6, q1, q3\n vldrb.u8 q1, [r3]\n vmladava.s8 lr, q0, q3\n"                                            \
    MLF_DOT_2X4_ROWS_LAST("ldrd r3, r5, [sp]\n")
/* Windows of one row; the sums of the channels before are gathered at the beginning, when those are stored. */
#define MLF_DOT_2X4_GATHER "vmov q4[2], q4[0], r0, r4\n"
#define MLF_DOT_2X4_SUM_VECTORS4(rounding, clamp)                                                                      \
    MLF_DOT_2X4_NEXT MLF_DOT_2X4_GATHER MLF_DOT_2X4_ROWS_FIRST("r5")                                                   \
    "mlf_step \"" MLF_DOT_2X4_BIAS MLF_DOT_2X4_BIAS4 "\",\"" MLF_DOT_2X4_BIAS5 MLF_DOT_2X4_FACTOR_##rounding           \
    "\",begin=vmladav\n"                                                                                               \
    MLF_DOT_2X4_TWO("add r11, #4;" MLF_DOT_2X4_SCALE("") MLF_DOT_2X4_SIGN4_##rounding, MLF_DOT_2X4_ROUND4_##rounding   \
                    MLF_DOT_2X4_SIGN5_##rounding MLF_DOT_2X4_ROUND5_##rounding MLF_DOT_2X4_SHIFT_##rounding            \
                    MLF_DOT_2X4_SHIFT4)                                                                                \
    "vmladava.s8 r6, q0, q3\n vldrb.u8 q0, [r3]\n vmladava.s8 lr, q1, q3\n"                                            \
    "vldrb.u8 q2, [r1], #32\n" MLF_DOT_2X4_SHIFT5 "vmladava.s8 r0, q0, q2\n"                                           \
    "vldrb.u8 q1, [r5]\n" MLF_DOT_2X4_NARROW4 "vmladava.s8 r8, q1, q2\n"                                               \
    "vldrb.u8 q3, [r1], #-16\n vmladava.s8 r4, q0, q3\n" MLF_DOT_2X4_NARROW5                                           \
    "vldrb.u8 q2, [r1], #32\n vmladava.s8 r12, q1, q3\n" MLF_DOT_2X4_OFFSET "ldr r5, [sp, #36]\n"                      \
    MLF_DOT_2X4_MOVE "vmladava.s8 r2, q0, q2\n" MLF_DOT_2X4_BYTES_##clamp "vldrb.u8 q3, [r1], #16\n"                   \
    "vmladava.s8 r10, q1, q2\n" MLF_DOT_2X4_PUT_FIRST "cmp r1, r5\n ldrd r3, r5, [sp]\n bne 2b\n" MLF_DOT_2X4_REST
#define MLF_DOT_2X4_SUM_VECTORS2(rounding, clamp)                                                                      \
    "2: vldrb.u8 q0, [r3]\n vldrb.u8 q2, [r1], #32\n 3: " MLF_DOT_2X4_GATHER "vmladav.s8 r0, q0, q2\n"                 \
    "vldrb.u8 q3, [r1], #-16\n vmladav.s8 r4, q0, q3\n"                                                                \
    "vldrb.u8 q1, [r5]\n vmov q4[3], q4[1], r2, r6\n vmladav.s8 r8, q1, q2\n"                                          \
    MLF_DOT_2X4_BIAS "vmov q5[3], q5[1], r10, lr\n vmladav.s8 r12, q1, q3\n"                                           \
    "vldrb.u8 q2, [r1], #32\n" MLF_DOT_2X4_BIAS4 "vmladav.s8 r2, q0, q2\n"                                             \
    MLF_DOT_2X4_BIAS5 "vmladav.s8 r10, q1, q2\n"                                                                       \
    "vldrb.u8 q3, [r1], #16\n add r11, #4\n vmladav.s8 r6, q0, q3\n" MLF_DOT_2X4_FACTOR_##rounding                     \
    "vmladav.s8 lr, q1, q3\n vldrb.u8 q0, [r3, #16]\n"                                                                 \
    MLF_DOT_2X4_SCALE("vldrb.u8 q1, [r5, #16]\n") "vldrb.u8 q2, [r1], #32\n" MLF_DOT_2X4_SIGN4_##rounding              \
    "vmladava.s8 r0, q0, q2\n" MLF_DOT_2X4_ROUND4_##rounding "vmladava.s8 r8, q1, q2\n"                                \
    "vldrb.u8 q3, [r1], #-16\n" MLF_DOT_2X4_SIGN5_##rounding "vmladava.s8 r4, q0, q3\n" MLF_DOT_2X4_ROUND5_##rounding  \
    "vmladava.s8 r12, q1, q3\n vldrb.u8 q2, [r1], #32\n ldr r5, [sp, #36]\n" MLF_DOT_2X4_SHIFT_##rounding              \
    MLF_DOT_2X4_SHIFT4 "vmladava.s8 r2, q0, q2\n" MLF_DOT_2X4_SHIFT5 "vldrb.u8 q3, [r1], #16\n" MLF_DOT_2X4_NARROW4    \
    "vmladava.s8 r10, q1, q2\n" MLF_DOT_2X4_OFFSET MLF_DOT_2X4_NARROW5 "vmladava.s8 r6, q0, q3\n"                      \
    "vmov q5[2], q5[0], r8, r12\n" MLF_DOT_2X4_MOVE "vmladava.s8 lr, q1, q3\n" MLF_DOT_2X4_BYTES_##clamp               \
    MLF_DOT_2X4_PUT_FIRST "cmp r1, r5\n ldr r5, [sp, #4]\n bne 2b\n" MLF_DOT_2X4_COUNT
/*
 * A step for less than a vector: bytes of the pixels beyond the tail count as 0, so that the bytes read as their weights
 * have no effect.
 */
#define MLF_DOT_2X4_LESS(begin, one, two, three, four, five, six)                                                      \
    begin ".s8 r6, q0, q3\n vpst\n vldrbt.u8 q0, [r3]\n ldr r3, [sp, #28]\n" begin ".s8 lr, q1, q3\n" one              \
    "vldrb.u8 q2, [r1]\n" two "vmladava.s8 r0, q0, q2\n add r1, r3\n"                                                  \
    "vpst\n vldrbt.u8 q1, [r5]\n" three "vmladava.s8 r8, q1, q2\n ldr r5, [sp, #36]\n"                                 \
    "vldrb.u8 q3, [r1]\n add r1, r3\n vmladava.s8 r2, q0, q3\n" four                                                   \
    "vldrb.u8 q2, [r1]\n vmladava.s8 r10, q1, q3\n add r1, r3\n" five "vmladava.s8 r4, q0, q2\n"                       \
    "vldrb.u8 q3, [r1]\n add r1, r3\n vmladava.s8 r12, q1, q2\n" six                                                   \
    MLF_DOT_2X4_PUT_FIRST "cmp r1, r5\n ldrd r3, r5, [sp]\n bne 2b\n" MLF_DOT_2X4_REST
#define MLF_DOT_2X4_SUM_MIXED2(rounding, clamp)                                                                        \
    MLF_DOT_2X4_NEXT MLF_DOT_2X4_GATHER MLF_DOT_2X4_ROWS_FIRST("r5")                                                   \
    "mlf_step \"" MLF_DOT_2X4_BIAS MLF_DOT_2X4_BIAS4 "\",\"" MLF_DOT_2X4_BIAS5 MLF_DOT_2X4_FACTOR_##rounding           \
    "vqrdmulh.s32 q4, q4, q6; add r11, #4\",begin=vmladav\n"                                                           \
    MLF_DOT_2X4_LESS("vmladava", "vqrdmulh.s32 q5, q5, q6\n" MLF_DOT_2X4_SIGN4_##rounding                              \
                     MLF_DOT_2X4_ROUND4_##rounding, MLF_DOT_2X4_SIGN5_##rounding MLF_DOT_2X4_ROUND5_##rounding         \
                     MLF_DOT_2X4_SHIFT_##rounding MLF_DOT_2X4_SHIFT4, MLF_DOT_2X4_SHIFT5,                              \
                     MLF_DOT_2X4_NARROW4 MLF_DOT_2X4_OFFSET, MLF_DOT_2X4_NARROW5,                                      \
                     MLF_DOT_2X4_MOVE MLF_DOT_2X4_BYTES_##clamp)
#define MLF_DOT_2X4_SUM_MIXED1(rounding, clamp)                                                                        \
    MLF_DOT_2X4_NEXT MLF_DOT_2X4_GATHER MLF_DOT_2X4_ROWS_FIRST("r5")                                                   \
    MLF_DOT_2X4_LESS("vmladav", MLF_DOT_2X4_BIAS MLF_DOT_2X4_BIAS4 MLF_DOT_2X4_BIAS5,                                  \
                     MLF_DOT_2X4_FACTOR_##rounding MLF_DOT_2X4_SCALE("add r11, #4\n") MLF_DOT_2X4_SIGN4_##rounding     \
                     MLF_DOT_2X4_ROUND4_##rounding MLF_DOT_2X4_SIGN5_##rounding, MLF_DOT_2X4_ROUND5_##rounding         \
                     MLF_DOT_2X4_SHIFT_##rounding MLF_DOT_2X4_SHIFT4 MLF_DOT_2X4_SHIFT5,                               \
                     MLF_DOT_2X4_NARROW4 MLF_DOT_2X4_OFFSET, MLF_DOT_2X4_NARROW5,                                      \
                     MLF_DOT_2X4_MOVE MLF_DOT_2X4_BYTES_##clamp)
/* q0 and q1 stay the pixels of a pair; r3 is the zero point and r5 the end of the weights. */
#define MLF_DOT_2X4_SUM_VECTORS1(rounding, clamp)                                                                      \
    "3: vldrb.u8 q2, [r1], #32\n" MLF_DOT_2X4_GATHER MLF_DOT_2X4_BIAS "vmov q4[3], q4[1], r2, r6\n"                    \
    "vmladav.s8 r0, q0, q2\n" MLF_DOT_2X4_BIAS4 "vmladav.s8 r8, q1, q2\n"                                              \
    MLF_DOT_2X4_BIAS5 "vldrb.u8 q3, [r1], #-16\n vmladav.s8 r4, q0, q3\n" MLF_DOT_2X4_FACTOR_##rounding                \
    "vmladav.s8 r12, q1, q3\n add r11, #4\n" MLF_DOT_2X4_SCALE("vldrb.u8 q2, [r1], #32\n")                             \
    MLF_DOT_2X4_SIGN4_##rounding "vmladav.s8 r2, q0, q2\n" MLF_DOT_2X4_ROUND4_##rounding                               \
    "vldrb.u8 q3, [r1], #16\n" MLF_DOT_2X4_SIGN5_##rounding "vmladav.s8 r10, q1, q2\n"                                 \
    MLF_DOT_2X4_ROUND5_##rounding MLF_DOT_2X4_SHIFT_##rounding MLF_DOT_2X4_SHIFT4 "vmladav.s8 r6, q0, q3\n"            \
    MLF_DOT_2X4_SHIFT5 "vmladav.s8 lr, q1, q3\n" MLF_DOT_2X4_NARROW4                                                   \
    MLF_DOT_2X4_NARROW5 "vmov q5[2], q5[0], r8, r12\n vqadd.s16 q4, q4, r3\n" MLF_DOT_2X4_BYTES_##clamp                \
    "vmov q5[3], q5[1], r10, lr\n" MLF_DOT_2X4_PUT_FIRST "cmp r1, r5\n bne 3b\n"                                       \
    MLF_DOT_2X4_COUNT

/* The clamp in vectors. */
#define MLF_DOT_2X4_RANGE_ALL
#define MLF_DOT_2X4_RANGE_BOUNDS                                                                                       \
    "ldrd r1, r3, [sp, #56]\n vdup.16 q0, r1\n vstrh.16 q0, [r0, #136]\n vdup.16 q1, r3\n vstrh.16 q1, [r0, #152]\n"

/* What shapes differ in otherwise: preparation, the first loads of a pair, and what follows its first channels. */
#define MLF_DOT_2X4_END_OF_LAST "ldr r1, [sp, #36]\n sub r1, #64\n str r1, [sp, #36]\n"
#define MLF_DOT_2X4_MACROS_MIXED1
#define MLF_DOT_2X4_MACROS_MIXED2 MLF_DOT_2X4_ROWS_STEP
#define MLF_DOT_2X4_MACROS_VECTORS1
#define MLF_DOT_2X4_MACROS_VECTORS2
#define MLF_DOT_2X4_MACROS_VECTORS4 MLF_DOT_2X4_ROWS_STEP
#define MLF_DOT_2X4_MACROS_ROWS3 MLF_DOT_2X4_ROWS_STEP
#define MLF_DOT_2X4_MACROS_ROWS6 MLF_DOT_2X4_ROWS_STEP
#define MLF_DOT_2X4_MACROS_ROWS12 MLF_DOT_2X4_ROWS_STEP
#define MLF_DOT_2X4_MACROS_NEAR3 MLF_DOT_2X4_ROWS_STEP MLF_DOT_2X4_NEAR_STEP
#define MLF_DOT_2X4_PURGE_MIXED1
#define MLF_DOT_2X4_PURGE_MIXED2 ".purgem mlf_step\n"
#define MLF_DOT_2X4_PURGE_VECTORS1
#define MLF_DOT_2X4_PURGE_VECTORS2
#define MLF_DOT_2X4_PURGE_VECTORS4 ".purgem mlf_step\n"
#define MLF_DOT_2X4_PURGE_ROWS3 ".purgem mlf_step\n"
#define MLF_DOT_2X4_PURGE_ROWS6 ".purgem mlf_step\n"
#define MLF_DOT_2X4_PURGE_ROWS12 ".purgem mlf_step\n"
#define MLF_DOT_2X4_PURGE_NEAR3 ".purgem mlf_step\n .purgem mlf_near\n"
#define MLF_DOT_2X4_READY_MIXED1 "ldr r1, [sp, #28]\n vctp.8 r1\n"
#define MLF_DOT_2X4_READY_MIXED2 MLF_DOT_2X4_READY_MIXED1
#define MLF_DOT_2X4_READY_VECTORS1
#define MLF_DOT_2X4_READY_VECTORS2
#define MLF_DOT_2X4_READY_VECTORS4
#define MLF_DOT_2X4_READY_ROWS3 MLF_DOT_2X4_END_OF_LAST "str r11, [sp, #84]\n ldr r11, [sp, #20]\n"
#define MLF_DOT_2X4_READY_ROWS6 MLF_DOT_2X4_READY_ROWS3
#define MLF_DOT_2X4_READY_ROWS12 "ldr r1, [sp, #16]\n sub r1, #1\n str r1, [sp, #16]\n"
#define MLF_DOT_2X4_READY_NEAR3 MLF_DOT_2X4_END_OF_LAST                                                                \
    "ldr r1, [sp, #20]\n sub r1, #16\n str r1, [sp, #4]\n mov r1, #0\n str r1, [sp, #92]\n str r1, [sp, #108]\n"
#define MLF_DOT_2X4_START_MIXED1 MLF_DOT_2X4_START_VECTORS4
#define MLF_DOT_2X4_START_MIXED2 MLF_DOT_2X4_START_VECTORS4
#define MLF_DOT_2X4_START_VECTORS1                                                                                     \
    "vldrb.u8 q0, [r3]\n vldrb.u8 q1, [r5]\n ldr r3, [sp, #52]\n ldr r5, [sp, #36]\n"
#define MLF_DOT_2X4_START_VECTORS2 "vldrb.u8 q0, [r3]\n vldrb.u8 q2, [r1], #32\n"
#define MLF_DOT_2X4_START_VECTORS4 "vldrb.u8 q0, [r3], #16\n vldrb.u8 q2, [r1], #32\n"
#define MLF_DOT_2X4_START_ROWS3 MLF_DOT_2X4_START_VECTORS4
#define MLF_DOT_2X4_START_ROWS6 MLF_DOT_2X4_START_VECTORS4
#define MLF_DOT_2X4_START_ROWS12 MLF_DOT_2X4_START_VECTORS4
#define MLF_DOT_2X4_START_NEAR3 MLF_DOT_2X4_START_VECTORS4
#define MLF_DOT_2X4_BEGUN_MIXED1
#define MLF_DOT_2X4_BEGUN_MIXED2
#define MLF_DOT_2X4_BEGUN_VECTORS1
#define MLF_DOT_2X4_BEGUN_VECTORS2
#define MLF_DOT_2X4_BEGUN_VECTORS4
#define MLF_DOT_2X4_BEGUN_ROWS3 "str r11, [sp, #84]\n"
#define MLF_DOT_2X4_BEGUN_ROWS6 MLF_DOT_2X4_BEGUN_ROWS3
#define MLF_DOT_2X4_BEGUN_ROWS12
#define MLF_DOT_2X4_BEGUN_NEAR3

/*
 * On the stack: the struct, but at sp the windows, the number of pairs that are left, and the outputs minus 4. The
 * vector at 88 is added to these for the next pair, that at 104 for the next line; at 24 is the number of further lines.
 * At 120 is the zero point, at 136 and 152 the clamp. As outputs "of the channels before the first", anything is written
 * where the first outputs will be. C is set in the first channels of a pair, Z is set too when only outputs are left.
 */
#define MLF_DOT_2X4_FIXED(name, shape, rounding, clamp)                                                                \
    MLF_NAKED void name(const struct mlf_dot_2x4 *dot MLF_UNUSED)                                                      \
    {                                                                                                                  \
        __asm__(MLF_ENTER MLF_DOT_2X4_MACROS_##shape "sub sp, #168\n"                                                  \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"   \
                "vldrh.u16 q7, [r0, #64]\n ldr r4, [r0, #80]\n mov r0, sp\n"                                           \
                "vstrw.32 q0, [r0]\n vstrw.32 q1, [r0, #16]\n vstrw.32 q2, [r0, #32]\n vstrw.32 q3, [r0, #48]\n"       \
                "vstrh.16 q7, [r0, #64]\n" MLF_DOT_2X4_RANGE_##clamp                                                   \
                "ldrd r7, r11, [sp, #40]\n ldrd r5, r1, [sp, #48]\n ldrd r2, r3, [sp, #8]\n vdup.16 q2, r1\n"          \
                "sub r11, #4\n vstrh.16 q2, [r0, #120]\n str r11, [sp, #12]\n mov r6, #-1\n"                           \
                "strd r3, r3, [sp, #88]\n strd r6, r5, [sp, #96]\n movs r6, #0\n cbz r4, 5f\n"                         \
                "ldr r6, [r4]\n ldrd r8, r10, [r4, #4]\n subs r2, #1\n mls r8, r2, r3, r8\n mls r10, r2, r5, r10\n"    \
                "strd r8, r8, [sp, #104]\n strd r2, r10, [sp, #112]\n"                                                 \
                "5: str r6, [sp, #24]\n" MLF_DOT_2X4_READY_##shape "ldr r1, [sp, #32]\n cmp r1, #0\n b 1f\n"           \
                MLF_DOT_2X4_SUM_##shape(rounding, clamp) "subs r1, #1\n add r1, sp, #88\n beq 8f\n"                    \
                "6: vldrw.u32 q2, [sp]\n vldrw.u32 q6, [r1]\n vadd.i32 q2, q2, q6\n vstrw.32 q2, [sp]\n"               \
                "1: ldrd r3, r5, [sp]\n ldr r1, [sp, #32]\n" MLF_DOT_2X4_START_##shape "b 3b\n"                        \
                "7: " MLF_DOT_2X4_PUT "beq 4f\n ldr r7, [sp, #40]\n ldr r11, [sp, #12]\n" MLF_DOT_2X4_BEGUN_##shape    \
                "b 9b\n"                                                                                               \
                "8: ldr r1, [sp, #24]\n cmp r1, #0\n sub r1, #1\n str r1, [sp, #24]\n add r1, sp, #104\n bgt 6b\n"     \
                "b 1b\n"                                                                                               \
                "4: add sp, #168\n" MLF_DOT_2X4_PURGE_##shape MLF_LEAVE);                                              \
    }

#else

#define MLF_DOT_2X4_FIXED MLF_DOT_2X4

#endif /* MLF_MVE */

MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_all, MIXED1, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_relu, MIXED1, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_right, MIXED1, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed1_any, MIXED1, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_all, MIXED2, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_relu, MIXED2, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_right, MIXED2, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_mixed2_any, MIXED2, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors1_all, VECTORS1, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors1_relu, VECTORS1, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors1_right, VECTORS1, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors1_any, VECTORS1, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors2_all, VECTORS2, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors2_relu, VECTORS2, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors2_right, VECTORS2, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors2_any, VECTORS2, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_all, VECTORS4, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_relu, VECTORS4, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_right, VECTORS4, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_vectors4_any, VECTORS4, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_all, ROWS3, RELU, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_relu, ROWS3, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_right, ROWS3, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows3_any, ROWS3, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows6_relu, ROWS6, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows6_right, ROWS6, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows6_any, ROWS6, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows12_relu, ROWS12, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows12_right, ROWS12, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_rows12_any, ROWS12, ANY, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_near3_relu, NEAR3, RELU, BOUNDS)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_near3_right, NEAR3, RIGHT, ALL)
MLF_DOT_2X4_FIXED(mlf_dot_2x4_near3_any, NEAR3, ANY, BOUNDS)

#endif /* MLF_DOT_2X4_FIXED_MVE_H_ */
