/*
 * The int8 matrix product of CONV_2D and FULLY_CONNECTED for cores with the DSP extension: SMLAD, two products each.
 *
 * Blocking: two output channels by three pixels (or rows of a matrix), six sums in registers; by two where memory is
 * short. Activations are expanded
 * once to 16 bits into scratch memory; weights stay bytes in flash and cost one SXTB16 for two channels:
 *
 *   Channels 2j and 2j + 1 share a word for two inputs k and l; each half is 256 * odd + even, as a signed number:
 *
 *       word = (256 * odd[k] + even[k]) & 0xffff | (256 * odd[l] + even[l]) << 16
 *
 *   SMLAD with the word itself adds 256 * odd + even, SMLAD with SXTB16(word) adds even; the difference, divided by
 *   256, is the sum of the odd channel. It is exact as long as that sum lies within 24 bits; the compiler looks.
 *
 * The inner loop spends 17 instructions on 24 products (0.71 each, 0.73 with its branch, unrolled for 16 inputs):
 * 1 LDM for weights, 2 LDM for activations, 2 SXTB16, 12 SMLAD.
 *
 * Layout of a filter, int32, for each pair of output channels, `depth` being the inputs rounded up to four:
 *   depth / 2 words of weights, for inputs (0, 2), (1, 3), (4, 6), (5, 7), ...: the order in which SXTB16 expands bytes
 *   2 * bias of both channels, with the input's zero point folded in
 *   the multipliers of both
 *   shift of the even channel | shift of the odd one << 8
 * Of an odd number of channels the last two make the last pair, which repeats one channel.
 *
 * Requantisation rounds twice, as requantize.h does, in 6 instructions from the sum to the stored byte:
 *   r = (y + (y < 0 ? -1 : 0) + 2^(e - 1)) >> e with y = SMMULR(2 * sum, multiplier), e = shift + 1, plus zero point.
 * SMMLAR adds (2 * zero point + 1) << shift in the same step, the sign is that of the sum (where y = 0 it makes no
 * difference), SSAT does the last bit of the shift. The compiler proves that nothing overflows, or takes conv2d.h.
 */
#ifndef MLF_MATMUL_DSP_H_
#define MLF_MATMUL_DSP_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"

#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#define MLF_DSP_ASM 1
#else
#define MLF_DSP_ASM 0
#endif

/* What a block of pixels needs to know of its layer; assembly reads it by position. */
struct mlf_block_dsp {
    int32_t groups;   /* of four inputs */
    int32_t pairs;    /* of output channels */
    int32_t pitch;    /* bytes from one pixel's output to the next one's */
    int32_t rounding; /* 2 * the output's zero point + 1 */
};

/* Return a byte of a word, as a signed number; 0 is the lowest. */
MLF_KERNEL int32_t mlf_byte_of_dsp(int32_t word, int32_t position)
{
    return (int8_t)(uint8_t)((uint32_t)word >> (8 * position));
}

#if MLF_DSP_ASM

#define MLF_NAKED static __attribute__((naked, noinline, unused))

/*
 * Expand `groups` times four bytes of three pixels to 16 bits: of each group bytes (0, 2) of every pixel, then (1, 3).
 * Returns the end of what was written.
 */
MLF_NAKED int16_t *mlf_expand3_dsp(int16_t *rows MLF_UNUSED, const int8_t *first MLF_UNUSED,
                                   const int8_t *second MLF_UNUSED, const int8_t *third MLF_UNUSED,
                                   int32_t groups MLF_UNUSED)
{
    __asm__ volatile("push {r4-r9, lr}\n\t"
                     "ldr lr, [sp, #28]\n"
                     "1:\n\t"
                     "ldr r7, [r1], #4\n\t"
                     "ldr r8, [r2], #4\n\t"
                     "ldr r9, [r3], #4\n\t"
                     "sxtb16 r4, r7\n\t"
                     "sxtb16 r5, r8\n\t"
                     "sxtb16 r6, r9\n\t"
                     "sxtb16 r7, r7, ror #8\n\t"
                     "sxtb16 r8, r8, ror #8\n\t"
                     "sxtb16 r9, r9, ror #8\n\t"
                     "stmia r0!, {r4-r9}\n\t"
                     "subs lr, lr, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r9, pc}");
}

/* As mlf_expand3_dsp for two pixels. */
MLF_NAKED int16_t *mlf_expand2_dsp(int16_t *rows MLF_UNUSED, const int8_t *first MLF_UNUSED,
                                   const int8_t *second MLF_UNUSED, int32_t groups MLF_UNUSED)
{
    __asm__ volatile("push {r4-r7, lr}\n"
                     "1:\n\t"
                     "ldr r6, [r1], #4\n\t"
                     "ldr r7, [r2], #4\n\t"
                     "sxtb16 r4, r6\n\t"
                     "sxtb16 r5, r7\n\t"
                     "sxtb16 r6, r6, ror #8\n\t"
                     "sxtb16 r7, r7, ror #8\n\t"
                     "stmia r0!, {r4-r7}\n\t"
                     "subs r3, r3, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r7, pc}");
}

/* Expand four bytes of one pixel: (0, 2), then (1, 3). */
MLF_KERNEL void mlf_expand4_dsp(int16_t *row, const int8_t *input)
{
    uint32_t even, odd;
    __asm__("ldr %1, [%2]\n\t"
            "sxtb16 %0, %1\n\t"
            "sxtb16 %1, %1, ror #8"
            : "=&r"(even), "=&r"(odd)
            : "r"(input), "m"(*(const int8_t(*)[4])input));
    memcpy(row, &even, sizeof even);
    memcpy(row + 2, &odd, sizeof odd);
}

/* From twice a sum to the stored byte; `scratch` is lost. The shift is in the low byte of r7. */
#define MLF_STORE_DSP(sum, multiplier, addend, scratch, place)                                                         \
    "add " scratch ", " addend ", " sum ", asr #31\n\t"                                                                \
    "smmlar " sum ", " sum ", " multiplier ", " scratch "\n\t"                                                         \
    "asr " sum ", " sum ", r7\n\t"                                                                                     \
    "ssat " sum ", #8, " sum ", asr #1\n\t"                                                                            \
    "strb " sum ", " place "\n\t"

/* All pairs of output channels of a block of pixels: r0 expanded inputs, r1 filter, r2 output, r3 block. */
#define MLF_BLOCK_DSP(first_group, group, recover_sums, store_even, store_odd)                                         \
    "push {r4-r11, lr}\n\t"                                                                                            \
    "sub sp, sp, #28\n\t"                                                                                              \
    "ldmia r3, {r4-r7}\n\t"                                                                                            \
    "add r5, r2, r5, lsl #1\n\t"                                                                                       \
    "str r5, [sp, #24]\n\t"      /* the end of the first pixel's outputs */                                            \
    "str r7, [sp, #20]\n\t"      /* rounding */                                                                        \
    "strd r2, r6, [sp, #12]\n\t" /* output and pitch */                                                                \
    "str r0, [sp]\n\t"           /* inputs */                                                                          \
    "add r5, r4, #2\n\t"                                                                                               \
    "lsrs r5, r5, #2\n\t"        /* rounds of four groups after the first group */                                     \
    "rsb r4, r4, r5, lsl #2\n\t"                                                                                       \
    "add r4, r4, #1\n\t"         /* groups that the first round leaves out */                                          \
    "it eq\n\t"                                                                                                        \
    "moveq r4, #4\n\t"           /* no round: leave */                                                                 \
    "strd r5, r4, [sp, #4]\n"                                                                                          \
    "1:\n\t"                                                                                                           \
    "ldr r0, [sp]\n\t" first_group                                                                                     \
    "ldrd r2, r3, [sp, #4]\n\t"                                                                                        \
    "tbb [pc, r3]\n"                                                                                                   \
    "2:\n\t"                                                                                                           \
    ".byte (3f - 2b) / 2, (4f - 2b) / 2, (5f - 2b) / 2, (6f - 2b) / 2, (7f - 2b) / 2\n\t"                              \
    ".balign 2\n"                                                                                                      \
    "3:\n\t" group "4:\n\t" group "5:\n\t" group "6:\n\t" group                                                        \
    "subs r2, r2, #1\n\t"                                                                                              \
    "bne 3b\n"                                                                                                         \
    "7:\n\t"                                                                                                           \
    "ldmia r1!, {r3-r7}\n\t" recover_sums /* biases, multipliers, shifts */                                            \
    "ldrd r0, r2, [sp, #12]\n\t"                                                                                       \
    "ldr r3, [sp, #20]\n\t"                                                                                            \
    "lsl r3, r3, r7\n\t" store_even                                                                                    \
    "ldr r3, [sp, #20]\n\t"                                                                                            \
    "lsr r7, r7, #8\n\t"                                                                                               \
    "lsl r3, r3, r7\n\t" store_odd                                                                                     \
    "ldr r3, [sp, #24]\n\t"                                                                                            \
    "str r0, [sp, #12]\n\t"                                                                                            \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 1b\n\t"                                                                                                       \
    "mov r0, r1\n\t"                                                                                                   \
    "add sp, sp, #28\n\t"                                                                                              \
    "pop {r4-r11, pc}"

/* From 256 * odd + even and even to twice the sum of each channel; biases are doubled already. */
#define MLF_RECOVER_DSP(even, odd)                                                                                     \
    "sub " odd ", " odd ", " even "\n\t"                                                                               \
    "add " even ", r3, " even ", lsl #1\n\t"                                                                           \
    "add " odd ", r4, " odd ", asr #7\n\t"

/*
 * Three pixels: r3, r4 weights of two channels; r5-r7 inputs; r8-r10 even sums; r11, r12, lr odd and even ones. The
 * instruction adds to sums, and names them, or for the first products it is one that does not.
 */
#define MLF_STEP3_DSP(smlad, weights, r8, r9, r10, r11, r12, lr)                                                       \
    "ldmia r0!, {r5-r7}\n\t"                                                                                           \
    smlad " r11, " weights ", r5" r11 "\n\t"                                                                           \
    smlad " r12, " weights ", r6" r12 "\n\t"                                                                           \
    smlad " lr, " weights ", r7" lr "\n\t"                                                                             \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    smlad " r8, " weights ", r5" r8 "\n\t"                                                                             \
    smlad " r9, " weights ", r6" r9 "\n\t"                                                                             \
    smlad " r10, " weights ", r7" r10 "\n\t"


#define MLF_FIRST3_DSP(weights) MLF_STEP3_DSP("smuad", weights, "", "", "", "", "", "")
#define MLF_NEXT3_DSP(weights)                                                                                         \
    MLF_STEP3_DSP("smlad", weights, ", r8", ", r9", ", r10", ", r11", ", r12", ", lr")

/* All pairs of output channels of three pixels, whose expanded inputs are `rows`. Returns the end of the filter. */
MLF_NAKED const int32_t *mlf_pixels3_dsp(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_BLOCK_DSP(
        "ldmia r1!, {r3, r4}\n\t" MLF_FIRST3_DSP("r3") MLF_NEXT3_DSP("r4"),
        "ldmia r1!, {r3, r4}\n\t" MLF_NEXT3_DSP("r3") MLF_NEXT3_DSP("r4"),
        MLF_RECOVER_DSP("r8", "r11") MLF_RECOVER_DSP("r9", "r12") MLF_RECOVER_DSP("r10", "lr"),
        MLF_STORE_DSP("r10", "r5", "r3", "r4", "[r0, r2, lsl #1]")
        MLF_STORE_DSP("r9", "r5", "r3", "r4", "[r0, r2]")
        MLF_STORE_DSP("r8", "r5", "r3", "r4", "[r0], #1"),
        MLF_STORE_DSP("lr", "r6", "r3", "r4", "[r0, r2, lsl #1]")
        MLF_STORE_DSP("r12", "r6", "r3", "r4", "[r0, r2]")
        MLF_STORE_DSP("r11", "r6", "r3", "r4", "[r0], #1")));
}

/* Two pixels: r3, r4 weights of two channels; r5-r7, r10 inputs; r8, r9 even sums; r11, r12 odd and even ones. */
#define MLF_STEP2_DSP(smlad, weights, first, second, r8, r9, r11, r12)                                                 \
    smlad " r11, " weights ", " first r11 "\n\t"                                                                       \
    smlad " r12, " weights ", " second r12 "\n\t"                                                                      \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    smlad " r8, " weights ", " first r8 "\n\t"                                                                         \
    smlad " r9, " weights ", " second r9 "\n\t"


#define MLF_FIRST2_DSP(weights, first, second) MLF_STEP2_DSP("smuad", weights, first, second, "", "", "", "")
#define MLF_NEXT2_DSP(weights, first, second)                                                                          \
    MLF_STEP2_DSP("smlad", weights, first, second, ", r8", ", r9", ", r11", ", r12")

#define MLF_LOAD2_DSP "ldmia r1!, {r3, r4}\n\tldmia r0!, {r5-r7, r10}\n\t"

/* As mlf_pixels3_dsp for two pixels: 12 instructions for 16 products, 0.78 each with the branch. */
MLF_NAKED const int32_t *mlf_pixels2_dsp(const int16_t *rows MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                         int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_BLOCK_DSP(
        MLF_LOAD2_DSP MLF_FIRST2_DSP("r3", "r5", "r6") MLF_NEXT2_DSP("r4", "r7", "r10"),
        MLF_LOAD2_DSP MLF_NEXT2_DSP("r3", "r5", "r6") MLF_NEXT2_DSP("r4", "r7", "r10"),
        MLF_RECOVER_DSP("r8", "r11") MLF_RECOVER_DSP("r9", "r12"),
        MLF_STORE_DSP("r9", "r5", "r3", "r4", "[r0, r2]")
        MLF_STORE_DSP("r8", "r5", "r3", "r4", "[r0], #1"),
        MLF_STORE_DSP("r12", "r6", "r3", "r4", "[r0, r2]")
        MLF_STORE_DSP("r11", "r6", "r3", "r4", "[r0], #1")));
}

/* r0: inputs, r1: filter, r2-r5: eight inputs, r6-r9: their weights for two channels, r10, r11: sums as above. */
#define MLF_SINGLE_DSP(weights, input)                                                                                 \
    "smlad r11, " weights ", " input ", r11\n\t"                                                                       \
    "sxtb16 " weights ", " weights "\n\t"                                                                              \
    "smlad r10, " weights ", " input ", r10\n\t"

#define MLF_EIGHT_DSP(load_eight)                                                                                      \
    load_eight "ldmia r1!, {r6-r9}\n\t" MLF_SINGLE_DSP("r6", "r2") MLF_SINGLE_DSP("r7", "r3")                          \
        MLF_SINGLE_DSP("r8", "r4") MLF_SINGLE_DSP("r9", "r5")

/* Inputs that were expanded before: 14 instructions for 16 products, 0.91 each with the branch. */
#define MLF_LOAD4_INT16_DSP "ldmia r0!, {r2, r3}\n\t"
#define MLF_LOAD8_INT16_DSP "ldmia r0!, {r2-r5}\n\t"

/* Inputs as they lie in memory, perhaps not aligned: 19 instructions, 1.22 each. */
#define MLF_LOAD4_INT8_DSP                                                                                             \
    "ldr r2, [r0], #4\n\t"                                                                                             \
    "sxtb16 r3, r2, ror #8\n\t"                                                                                        \
    "sxtb16 r2, r2\n\t"
#define MLF_LOAD8_INT8_DSP                                                                                             \
    MLF_LOAD4_INT8_DSP                                                                                                 \
    "ldr r4, [r0], #4\n\t"                                                                                             \
    "sxtb16 r5, r4, ror #8\n\t"                                                                                        \
    "sxtb16 r4, r4\n\t"

/*
 * As mlf_pixels3_dsp for one pixel. After 508 inputs at the most the odd channel's sum is put aside, so that 24 bits
 * are enough whatever the weights are.
 */
#define MLF_PIXEL_DSP(load_four, load_eight)                                                                           \
    "push {r4-r11, lr}\n\t"                                                                                            \
    "sub sp, sp, #36\n\t"                                                                                              \
    "ldmia r3, {r4-r7}\n\t"                                                                                            \
    "add r5, r2, r5, lsl #1\n\t"                                                                                       \
    "strd r5, r7, [sp, #16]\n\t" /* the end of the outputs, rounding */                                                \
    "str r2, [sp, #12]\n\t"      /* output */                                                                          \
    "and r5, r4, #7\n\t"                                                                                               \
    "strd r0, r5, [sp]\n\t"      /* row, and groups of the loop for single ones */                                     \
    "lsr r4, r4, #3\n\t"         /* eight groups at a time, 15 times in a segment */                                   \
    "mov r5, #0\n\t"                                                                                                   \
    "b 9f\n"                                                                                                           \
    "8:\n\t"                                                                                                           \
    "sub r4, r4, #15\n\t"                                                                                              \
    "add r5, r5, #1\n"                                                                                                 \
    "9:\n\t"                                                                                                           \
    "cmp r4, #15\n\t"                                                                                                  \
    "bgt 8b\n\t"                                                                                                       \
    "str r4, [sp, #8]\n\t"       /* the first segment */                                                               \
    "cbz r5, 1f\n\t"                                                                                                   \
    "add r5, r5, #1\n"                                                                                                 \
    "1:\n\t"                                                                                                           \
    "strd r5, r5, [sp, #24]\n"   /* segments where there are several, and those still to come */                       \
    "2:\n\t"                                                                                                           \
    "ldrd r0, r12, [sp]\n\t"                                                                                           \
    "mov r10, #0\n\t"                                                                                                  \
    "mov r11, #0\n\t"                                                                                                  \
    "mov lr, #0\n\t"                                                                                                   \
    "cmp r12, #0\n\t"                                                                                                  \
    "beq 4f\n"                                                                                                         \
    "3:\n\t"                                                                                                           \
    load_four "ldmia r1!, {r6, r7}\n\t" MLF_SINGLE_DSP("r6", "r2") MLF_SINGLE_DSP("r7", "r3")                          \
    "subs r12, r12, #1\n\t"                                                                                            \
    "bne 3b\n"                                                                                                         \
    "4:\n\t"                                                                                                           \
    "ldr r12, [sp, #8]\n\t"                                                                                            \
    "cmp r12, #0\n\t"                                                                                                  \
    "beq 7f\n"                                                                                                         \
    "5:\n\t" MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight) MLF_EIGHT_DSP(load_eight)   \
    "subs r12, r12, #1\n\t"                                                                                            \
    "bne 5b\n\t"                                                                                                       \
    "ldr r2, [sp, #28]\n\t"                                                                                            \
    "cbz r2, 7f\n\t"                                                                                                   \
    "subs r2, r2, #1\n\t"                                                                                              \
    "beq 6f\n\t"                                                                                                       \
    "str r2, [sp, #28]\n\t"                                                                                            \
    "sub r11, r11, r10\n\t"                                                                                            \
    "add lr, lr, r11, asr #8\n\t"                                                                                      \
    "mov r11, r10\n\t"                                                                                                 \
    "mov r12, #15\n\t"                                                                                                 \
    "b 5b\n"                                                                                                           \
    "6:\n\t"                                                                                                           \
    "ldr r2, [sp, #24]\n\t"                                                                                            \
    "str r2, [sp, #28]\n"                                                                                              \
    "7:\n\t"                                                                                                           \
    "ldmia r1!, {r3-r7}\n\t"                                                                                           \
    "sub r11, r11, r10\n\t"                                                                                            \
    "add lr, lr, r11, asr #8\n\t"                                                                                      \
    "add r10, r3, r10, lsl #1\n\t"                                                                                     \
    "add r11, r4, lr, lsl #1\n\t"                                                                                      \
    "ldr r0, [sp, #12]\n\t"                                                                                            \
    "ldr r2, [sp, #20]\n\t"                                                                                            \
    "lsl r3, r2, r7\n\t"                                                                                               \
    MLF_STORE_DSP("r10", "r5", "r3", "r4", "[r0], #1")                                                                 \
    "lsr r7, r7, #8\n\t"                                                                                               \
    "lsl r3, r2, r7\n\t"                                                                                               \
    MLF_STORE_DSP("r11", "r6", "r3", "r4", "[r0], #1")                                                                 \
    "ldr r3, [sp, #16]\n\t"                                                                                            \
    "str r0, [sp, #12]\n\t"                                                                                            \
    "cmp r0, r3\n\t"                                                                                                   \
    "bne 2b\n\t"                                                                                                       \
    "mov r0, r1\n\t"                                                                                                   \
    "add sp, sp, #36\n\t"                                                                                              \
    "pop {r4-r11, pc}"

/* `row` holds expanded inputs. */
MLF_NAKED const int32_t *mlf_pixel_dsp(const int16_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                       int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_PIXEL_DSP(MLF_LOAD4_INT16_DSP, MLF_LOAD8_INT16_DSP));
}

/* `row` holds inputs as they are. */
MLF_NAKED const int32_t *mlf_pixel_int8_dsp(const int8_t *row MLF_UNUSED, const int32_t *filter MLF_UNUSED,
                                            int8_t *output MLF_UNUSED, const struct mlf_block_dsp *block MLF_UNUSED)
{
    __asm__ volatile(MLF_PIXEL_DSP(MLF_LOAD4_INT8_DSP, MLF_LOAD8_INT8_DSP));
}

#else /* the same in C */

/* Add both products of an input pair and a word of weights to the sums of the even and, times 256, the odd channel. */
MLF_KERNEL void mlf_smlad2_dsp(uint32_t sums[2], int32_t weights, const int16_t *input)
{
    const int32_t low = (int16_t)(uint16_t)weights;
    const int32_t high = (int16_t)(uint16_t)((uint32_t)weights >> 16);
    sums[0] += (uint32_t)(mlf_byte_of_dsp(weights, 0) * input[0] + mlf_byte_of_dsp(weights, 2) * input[1]);
    sums[1] += (uint32_t)(low * input[0]) + (uint32_t)(high * input[1]);
}

/* From twice a sum to the stored byte. */
MLF_KERNEL int8_t mlf_round_dsp(uint32_t sum, int32_t multiplier, uint32_t addend, int32_t shift)
{
    const int64_t product = (int64_t)(int32_t)sum * multiplier;
    const uint32_t high = (uint32_t)(((uint64_t)product + (UINT64_C(1) << 31)) >> 32);
    const int32_t result = (int32_t)(high + addend) >> shift >> 1;
    return (int8_t)(result < INT8_MIN ? INT8_MIN : result > INT8_MAX ? INT8_MAX : result);
}

MLF_KERNEL int8_t mlf_store_dsp(uint32_t sum, int32_t multiplier, int32_t rounding, int32_t shift)
{
    const uint32_t negative = (uint32_t)((int32_t)sum >> 31);
    return mlf_round_dsp(sum, multiplier, ((uint32_t)rounding << shift) + negative, shift);
}

/* Store the sums of a pair of channels, whose parameters follow its weights. */
MLF_KERNEL void mlf_store_pair_dsp(const int32_t *parameters, uint32_t even, uint32_t odd, int8_t *output,
                                   const struct mlf_block_dsp *block)
{
    output[0] = mlf_store_dsp((uint32_t)parameters[0] + 2 * even, parameters[2], block->rounding, parameters[4] & 31);
    output[1] = mlf_store_dsp((uint32_t)parameters[1] + 2 * odd, parameters[3], block->rounding, parameters[4] >> 8);
}

/* One pixel of one pair of channels; groups of its inputs lie `step` apart. Returns the end of the pair's filter. */
MLF_KERNEL const int32_t *mlf_pair_dsp(const int16_t *input, int32_t step, const int32_t *filter, int8_t *output,
                                       const struct mlf_block_dsp *block)
{
    const int32_t segment = 126; /* groups */
    const int32_t *const last = filter + 2 * block->groups;
    uint32_t sums[2] = {0, 0};
    uint32_t odd = 0;
    for (int32_t i = 0; i < block->groups; i++) {
        mlf_smlad2_dsp(sums, filter[2 * i], input + 4 * step * i);
        mlf_smlad2_dsp(sums, filter[2 * i + 1], input + 4 * step * i + 2 * step);
        if (i % segment == segment - 1 || i == block->groups - 1) {
            odd += (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8);
            sums[1] = sums[0];
        }
    }
    mlf_store_pair_dsp(last, sums[0], odd, output, block);
    return last + 5;
}

MLF_KERNEL void mlf_expand4_dsp(int16_t *row, const int8_t *input)
{
    row[0] = input[0];
    row[1] = input[2];
    row[2] = input[1];
    row[3] = input[3];
}

MLF_KERNEL int16_t *mlf_expand_pixels_dsp(int16_t *rows, const int8_t *const pixels[], int32_t count, int32_t groups)
{
    for (int32_t i = 0; i < groups; i++, rows += 4 * count) {
        for (int32_t p = 0; p < count; p++) {
            int16_t group[4];
            mlf_expand4_dsp(group, pixels[p] + 4 * i);
            memcpy(rows + 2 * p, group, 4);
            memcpy(rows + 2 * (count + p), group + 2, 4);
        }
    }
    return rows;
}

MLF_SHARED int16_t *mlf_expand3_dsp(int16_t *rows, const int8_t *first, const int8_t *second, const int8_t *third,
                                    int32_t groups)
{
    const int8_t *const pixels[] = {first, second, third};
    return mlf_expand_pixels_dsp(rows, pixels, 3, groups);
}

MLF_SHARED int16_t *mlf_expand2_dsp(int16_t *rows, const int8_t *first, const int8_t *second, int32_t groups)
{
    const int8_t *const pixels[] = {first, second};
    return mlf_expand_pixels_dsp(rows, pixels, 2, groups);
}

MLF_KERNEL const int32_t *mlf_block_in_c_dsp(int32_t count, const int16_t *rows, const int32_t *filter, int8_t *output,
                                             const struct mlf_block_dsp *block)
{
    for (int32_t pair = 0; pair < block->pairs; pair++) {
        const int32_t *end = filter;
        for (int32_t p = 0; p < count; p++) {
            end = mlf_pair_dsp(rows + 2 * p, count, filter, output + p * block->pitch + 2 * pair, block);
        }
        filter = end;
    }
    return filter;
}

MLF_SHARED const int32_t *mlf_pixels3_dsp(const int16_t *rows, const int32_t *filter, int8_t *output,
                                          const struct mlf_block_dsp *block)
{
    return mlf_block_in_c_dsp(3, rows, filter, output, block);
}

MLF_SHARED const int32_t *mlf_pixels2_dsp(const int16_t *rows, const int32_t *filter, int8_t *output,
                                          const struct mlf_block_dsp *block)
{
    return mlf_block_in_c_dsp(2, rows, filter, output, block);
}

MLF_SHARED const int32_t *mlf_pixel_dsp(const int16_t *row, const int32_t *filter, int8_t *output,
                                        const struct mlf_block_dsp *block)
{
    return mlf_block_in_c_dsp(1, row, filter, output, block);
}

MLF_SHARED const int32_t *mlf_pixel_int8_dsp(const int8_t *row, const int32_t *filter, int8_t *output,
                                             const struct mlf_block_dsp *block)
{
    for (int32_t pair = 0; pair < block->pairs; pair++) {
        const int32_t *const last = filter + 2 * block->groups;
        uint32_t sums[2] = {0, 0};
        uint32_t odd = 0;
        for (int32_t i = 0; i < block->groups; i++) {
            int16_t group[4];
            mlf_expand4_dsp(group, row + 4 * i);
            mlf_smlad2_dsp(sums, filter[2 * i], group);
            mlf_smlad2_dsp(sums, filter[2 * i + 1], group + 2);
            odd += (uint32_t)((int32_t)(sums[1] - sums[0]) >> 8);
            sums[1] = sums[0];
        }
        mlf_store_pair_dsp(last, sums[0], odd, output + 2 * pair, block);
        filter = last + 5;
    }
    return filter;
}

#endif

/* A matrix product and what follows it. */
struct mlf_matmul_dsp {
    int32_t rows;
    int32_t inputs;
    int32_t outputs;
    int32_t rounding; /* 2 * the output's zero point + 1 */
    int32_t minimum;  /* of a fused activation; INT8_MIN and INT8_MAX where there is none */
    int32_t maximum;
};

/* Clamp an output to a fused activation, where one does more than the store did. */
MLF_SHARED void mlf_clamp_dsp(int8_t *output, int32_t size, int32_t minimum, int32_t maximum)
{
    const int8_t *const end = output + size;
    for (; (minimum > INT8_MIN || maximum < INT8_MAX) && output != end; output++) {
        const int32_t value = *output < minimum ? minimum : *output;
        *output = (int8_t)(value > maximum ? maximum : value);
    }
}

MLF_KERNEL void mlf_activate_dsp(const struct mlf_matmul_dsp *matmul, int8_t *output)
{
    mlf_clamp_dsp(output, matmul->rows * matmul->outputs, matmul->minimum, matmul->maximum);
}

/* Expand one row to 16 bits, in the order of mlf_expand3_dsp, with zeros up to whole groups of four. */
MLF_SHARED void mlf_expand_dsp(int16_t *row, const int8_t *input, int32_t count)
{
    int32_t i = 0;
    for (; i + 4 <= count; i += 4, row += 4) {
        mlf_expand4_dsp(row, input + i);
    }
    if (i < count) {
        row[0] = input[i];
        row[1] = i + 2 < count ? input[i + 2] : 0;
        row[2] = i + 1 < count ? input[i + 1] : 0;
        row[3] = 0;
    }
}

/* How many pixels a block has, and in what form their inputs are. */
enum mlf_form_dsp { MLF_THREE_PIXELS, MLF_TWO_PIXELS, MLF_ONE_PIXEL, MLF_ONE_PIXEL_INT8 };

MLF_KERNEL const int32_t *mlf_pairs_dsp(enum mlf_form_dsp form, const void *rows, const int32_t *filter,
                                        int8_t *output, const struct mlf_block_dsp *block)
{
    if (form == MLF_THREE_PIXELS) {
        return mlf_pixels3_dsp((const int16_t *)rows, filter, output, block);
    }
    if (form == MLF_TWO_PIXELS) {
        return mlf_pixels2_dsp((const int16_t *)rows, filter, output, block);
    }
    if (form == MLF_ONE_PIXEL) {
        return mlf_pixel_dsp((const int16_t *)rows, filter, output, block);
    }
    return mlf_pixel_int8_dsp((const int8_t *)rows, filter, output, block);
}

/* All output channels of a block of pixels, which lie `pitch` bytes apart. */
MLF_KERNEL void mlf_pixels_dsp(const struct mlf_matmul_dsp *matmul, enum mlf_form_dsp form, const void *rows,
                               const int32_t *filter, int8_t *output, int32_t pitch)
{
    struct mlf_block_dsp block = {(matmul->inputs + 3) / 4, matmul->outputs / 2, pitch, matmul->rounding};
    filter = mlf_pairs_dsp(form, rows, filter, output, &block);
    if (matmul->outputs % 2 != 0) {
        block.pairs = 1;
        (void)mlf_pairs_dsp(form, rows, filter, output + matmul->outputs - 2, &block);
    }
}

/*
 * FULLY_CONNECTED and CONV_2D of 1x1 with stride 1: rows of inputs times the filter. `scratch` holds three expanded
 * rows, or one where `inputs` is not a multiple of four. The output may lie over the input, at the same address: a
 * block is read before it is written, and where the output is the larger one blocks go from the end to the start.
 */
MLF_SHARED void mlf_matmul_int8_dsp(const struct mlf_matmul_dsp *matmul, const int8_t *input, const int32_t *filter,
                                    int8_t *output, int16_t *scratch)
{
    const int32_t depth = matmul->inputs;
    const int32_t pitch = matmul->outputs;
    const int32_t backward = pitch > depth;
    int32_t count;
    for (int32_t done = 0; done < matmul->rows; done += count) {
        count = depth % 4 == 0 && matmul->rows - done >= 3 ? 3 : 1;
        const int32_t row = backward ? matmul->rows - done - count : done;
        const int8_t *const first = input + row * depth;
        if (count == 3) {
            (void)mlf_expand3_dsp(scratch, first, first + depth, first + 2 * depth, depth / 4);
            mlf_pixels_dsp(matmul, MLF_THREE_PIXELS, scratch, filter, output + row * pitch, pitch);
        } else {
            mlf_expand_dsp(scratch, first, depth);
            mlf_pixels_dsp(matmul, MLF_ONE_PIXEL, scratch, filter, output + row * pitch, pitch);
        }
    }
    mlf_activate_dsp(matmul, output);
}

/* As mlf_matmul_int8_dsp without scratch memory, for a multiple of four inputs; the output is apart from the input. */
MLF_SHARED void mlf_matvec_int8_dsp(const struct mlf_matmul_dsp *matmul, const int8_t *input, const int32_t *filter,
                                    int8_t *output)
{
    for (int32_t row = 0; row < matmul->rows; row++) {
        mlf_pixels_dsp(matmul, MLF_ONE_PIXEL_INT8, input + row * matmul->inputs, filter,
                       output + row * matmul->outputs, 0);
    }
    mlf_activate_dsp(matmul, output);
}

#endif /* MLF_MATMUL_DSP_H_ */
