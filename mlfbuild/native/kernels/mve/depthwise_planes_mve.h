/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * DEPTHWISE_CONV_2D on int8 for Helium (MVE) with filters of 3x3 and a stride of 1, one output per input channel.
 *
 * Rows of up to 16 channels are copied to scratch memory, each channel to a padded plane of its own. A gather load of
 * half words takes a patch of 4x4 pixels, which four VMLADAV multiply with the filter at four positions: 2 x 2 outputs.
 * 8 outputs take 28 cycles, and a copied element takes less than one.
 *
 * As a vector has sums of one channel only, its rescaling is in core registers; dot_4x2_mve.h explains it. The factor
 * is two to the power of the lowest four bits of the multiplier. Planes have `band` + 2 rows, for as many output rows
 * at a time; the last two rows are also the first ones of the next band. Rows are copied before output is written to
 * their address, so that the output may overwrite the input.
 *
 * The inner axis runs along a row of the plane, as in depthwise_conv2d_mve.h.
 */
#ifndef MLF_DEPTHWISE_PLANES_MVE_H_
#define MLF_DEPTHWISE_PLANES_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "depthwise_conv2d_mve.h"
#include "dot_4x2_mve.h"

/* A band of the planes of some channels; assembly accesses the members by position and changes the first five. */
struct mlf_planes {
    const int8_t *plane;
    int8_t *output;
    const int8_t *weights; /* 9 bytes of each channel */
    const struct mlf_brief *channels;
    int32_t count;    /* of channels */
    int32_t size;     /* of a plane */
    int32_t further;  /* groups of four columns in a row after the first one */
    int32_t pairs;    /* of rows */
    int32_t patches;  /* bytes from after a row's last patch to the first one of the next two rows */
    int32_t outputs;  /* bytes from a row's last outputs to the first ones of the next two rows */
    int32_t step;     /* bytes from the outputs of four columns to those of the next */
    int32_t mask;     /* of the outputs of the last group of a row, as in P0 */
    int32_t columns;  /* of the output */
    int32_t row_step; /* bytes from the outputs of two rows to those of the next two */
    int32_t unused[2];
    uint16_t patch[8];   /* bytes from a pixel to the pairs of pixels in a patch */
    uint16_t scatter[8]; /* bytes from `output` to the outputs of two patches, in turn */
    uint8_t order[16];   /* the weight for each pixel of a patch, except those of the last row and column */
};

#if defined(MLF_MVE)

/*
 * r1 points to a patch, r3 to the outputs of the group before; q4 to q7 are the filter at its four positions, q3 has
 * the offsets of a patch. r5, r7 and r11 rescale, r12 is the step. Sums of the first patch are in q1, of the second one
 * in q2; its last two follow at the beginning of the next group, together with the outputs. At sp are the offsets of
 * the outputs, at 16 zeros before the filter at 32, at 48 the struct, then `patches` and `outputs`, at 60 the number of
 * rows, at 64 `further`.
 */
#define MLF_PLANES_FIRST_SUMS                                                                                          \
    "vldrh.u16 q0, [r1, q3]\n vmladav.s8 r0, q0, q4\n adds r1, #2\n vmladav.s8 r4, q0, q6\n vmladav.s8 r2, q0, q5\n"   \
    "vmladav.s8 r6, q0, q7\n"                                                                                          \
    "vldrh.u16 q0, [r1, q3]\n vmladav.s8 r8, q0, q4\n vmov q1[2], q1[0], r0, r4\n vmladav.s8 r10, q0, q5\n"            \
    "vmladav.s8 r0, q0, q6\n vmov q1[3], q1[1], r2, r6\n vmladav.s8 r4, q0, q7\n adds r1, #2\n"                        \
    "vmov q2[2], q2[0], r8, r0\n"
#define MLF_PLANES_GROUP(store, next)                                                                                  \
    "vmul.i32 q1, q1, r5\n vmov q2[3], q2[1], r10, r4\n vmul.i32 q2, q2, r5\n"                                         \
    "vldrh.u16 q0, [r1, q3]\n vadd.i32 q2, q2, r7\n vqdmulh.s32 q2, q2, r11\n vadd.i32 q1, q1, r7\n"                   \
    "vmladav.s8 r6, q0, q7\n vqrshrnt.s32 q2, q2, #8\n vqdmulh.s32 q1, q1, r11\n adds r1, #2\n"                        \
    "vmladav.s8 r0, q0, q4\n vqrshrnb.s32 q2, q1, #8\n vmladav.s8 r4, q0, q6\n vldrh.u16 q1, [sp]\n"                   \
    "vmladav.s8 r2, q0, q5\n"                                                                                          \
    "vldrh.u16 q0, [r1, q3]\n vmladav.s8 r10, q0, q5\n vshr.s16 q2, q2, #8\n" store                                    \
    "vmladav.s8 r8, q0, q4\n vmov q1[2], q1[0], r0, r4\n vmladav.s8 r0, q0, q6\n adds r1, #2\n" next                   \
    "vmov q2[2], q2[0], r8, r0\n vmladav.s8 r4, q0, q7\n vmov q1[3], q1[1], r2, r6\n"
#define MLF_PLANES_OUTPUTS                                                                                             \
    "vmul.i32 q1, q1, r5\n vmov q2[3], q2[1], r10, r4\n vmul.i32 q2, q2, r5\n vadd.i32 q1, q1, r7\n"                   \
    "vadd.i32 q2, q2, r7\n ldr r2, [sp, #48]\n vqdmulh.s32 q2, q2, r11\n vqdmulh.s32 q1, q1, r11\n"                    \
    "ldr r0, [r2, #16]\n"                                                                                              \
    "vqrshrnt.s32 q2, q2, #8\n vldrh.u16 q0, [sp]\n vqrshrnb.s32 q2, q1, #8\n cmp r0, #0\n vshr.s16 q2, q2, #8\n"

MLF_NAKED void mlf_planes_run(struct mlf_planes *planes MLF_UNUSED)
{
    __asm__(MLF_ENTER "sub sp, #72\n mov r2, r0\n str r2, [sp, #48]\n"
            "vmov.i32 q0, #0\n vstrw.32 q0, [sp, #16]\n vldrh.u16 q0, [r2, #80]\n vstrh.16 q0, [sp]\n"
            "vldrh.u16 q3, [r2, #64]\n ldrd r0, r1, [r2, #32]\n strd r0, r1, [sp, #52]\n"
            "ldr r12, [r2, #40]\n ldr r0, [r2, #24]\n str r0, [sp, #64]\n"
            /* a channel */
            "1: ldrd r6, r8, [r2, #8]\n movw r0, #0x777\n vldrb.u8 q0, [r2, #96]\n vmsr p0, r0\n "
            "ldrd r7, r11, [r8], #8\n ldrd r4, r10, [r2, #16]\n ldrd r1, r3, [r2]\n"
            "vpst\n vldrbt.u8 q4, [r6, q0]\n movs r5, #1\n and r0, r11, #15\n lsls r5, r0\n adds r6, #9\n"
            "strd r6, r8, [r2, #8]\n vstrb.8 q4, [sp, #32]\n add r10, r1\n add r0, r3, #1\n subs r4, #1\n"
            "vldrb.u8 q5, [sp, #31]\n strd r10, r0, [r2]\n str r4, [r2, #16]\n"
            "vldrb.u8 q6, [sp, #28]\n ldr r0, [r2, #44]\n ldr r4, [r2, #28]\n"
            "vldrb.u8 q7, [sp, #27]\n vmsr p0, r0\n str r4, [sp, #60]\n ldr lr, [sp, #64]\n" MLF_PLANES_FIRST_SUMS
            "2: wls lr, lr, 4f\n"
            "3: " MLF_PLANES_GROUP("vstrb.16 q2, [r3, q1]\n", "add r3, r12\n") "le lr, 3b\n"
            /* the next two rows */
            "4: ldr r0, [sp, #60]\n ldr r2, [sp, #52]\n subs r0, #1\n beq 5f\n add r1, r2\n str r0, [sp, #60]\n"
            MLF_PLANES_GROUP("vpst\n vstrbt.16 q2, [r3, q1]\n", "")
            "ldr r0, [sp, #56]\n ldr lr, [sp, #64]\n add r3, r0\n b 2b\n"
            "5: " MLF_PLANES_OUTPUTS "vpst\n vstrbt.16 q2, [r3, q0]\n bne 1b\n add sp, #72\n" MLF_LEAVE);
}

#else

/* The same in C. */
MLF_SHARED void mlf_planes_run(struct mlf_planes *planes)
{
    for (; planes->count > 0; planes->count--) {
        for (int32_t at = 0; at < 2 * planes->pairs * planes->columns; at++) {
            const int32_t y = at / planes->columns;
            const int32_t x = at % planes->columns;
            const int8_t *const patch = planes->plane + y * planes->patch[2] + x;
            int32_t sum = 0;
            for (int32_t i = 0; i < 9; i++) {
                sum += patch[i / 3 * planes->patch[2] + i % 3] * planes->weights[i];
            }
            planes->output[y / 2 * planes->row_step + x / 4 * planes->step +
                           planes->scatter[y % 2 * 4 + x % 2 * 2 + x % 4 / 2]] =
                mlf_dot_4x2_output(sum, 1 << (planes->channels->multiplier & 15), planes->channels);
        }
        planes->plane += planes->size;
        planes->output++;
        planes->weights += 9;
        planes->channels++;
    }
}

#endif /* MLF_MVE */

/* The state of a convolution. */
struct mlf_planes_conv2d {
    const struct mlf_depthwise_image *image;
    const int8_t *input; /* of the block of channels */
    const int8_t *fill;  /* a pixel of padding */
    int8_t *memory;
    int32_t channels; /* of the block */
    int32_t pitch;    /* of a plane's rows */
    uint16_t offsets[16]; /* of planes */
    struct mlf_planes planes;
};

/* The pixels of a row, two of which are stored together. */
struct mlf_planes_row {
    const int8_t *fill; /* 16 bytes of padding */
    int32_t odd;        /* whether the first one is stored together with padding */
    int32_t pairs;
    int32_t alone; /* whether the last one is stored together with padding */
};

#if defined(MLF_MVE)

/*
 * Copy eight channels of a row, whose pixels are `step` bytes apart, to `to` + each of their offsets, which is even. The
 * assembly reads the members of `row`, because GCC has too few registers for them without optimisation.
 */
MLF_KERNEL void mlf_planes_insert8(int8_t *to, const int8_t *from, int32_t step, const struct mlf_planes_row *row,
                                   const uint16_t *offsets)
{
    __asm__ volatile("vldrh.u16 q2, [%[offsets]]\n"
                     "ldr lr, [%[row]]\n"
                     "vldrb.u8 q3, [lr]\n"
                     "ldr lr, [%[row], #4]\n"
                     "cmp lr, #0\n"
                     "beq 1f\n"
                     "vldrb.u16 q1, [%[from]]\n"
                     "vmov q0, q3\n"
                     "vsli.16 q0, q1, #8\n"
                     "add %[from], %[step]\n"
                     "vstrh.16 q0, [%[to], q2]\n"
                     "add %[to], #2\n"
                     "1: ldr lr, [%[row], #8]\n"
                     "wls lr, lr, 3f\n"
                     "2: vldrb.u16 q0, [%[from]]\n"
                     "add %[from], %[step]\n"
                     "vldrb.u16 q1, [%[from]]\n"
                     "add %[from], %[step]\n"
                     "vsli.16 q0, q1, #8\n"
                     "vstrh.16 q0, [%[to], q2]\n"
                     "add %[to], #2\n"
                     "le lr, 2b\n"
                     "3: ldr lr, [%[row], #12]\n"
                     "cmp lr, #0\n"
                     "beq 4f\n"
                     "vldrb.u16 q0, [%[from]]\n"
                     "vsli.16 q0, q3, #8\n"
                     "vstrh.16 q0, [%[to], q2]\n"
                     "4:\n"
                     : [to] "+r"(to), [from] "+l"(from)
                     : [step] "r"(step), [row] "r"(row), [offsets] "r"(offsets)
                     : "lr", "q0", "q1", "q2", "q3", "memory", "cc");
}

#else

MLF_KERNEL void mlf_planes_insert8(int8_t *to, const int8_t *from, int32_t step, const struct mlf_planes_row *row,
                                   const uint16_t *offsets)
{
    const int32_t count = row->odd + 2 * row->pairs + row->alone;
    for (int32_t c = 0; c < 8; c++) {
        int8_t *plane = to + offsets[c];
        if (row->odd != 0) {
            *plane++ = *row->fill;
        }
        for (int32_t x = 0; x < count; x++) {
            *plane++ = from[x * step + c];
        }
        if (row->alone != 0) {
            *plane = *row->fill;
        }
    }
}

#endif /* MLF_MVE */

/* Copy row r of the padded image to row `at` of the planes. Not inlined, as mlf_depthwise_insert. */
MLF_SHARED void mlf_planes_insert(const struct mlf_planes_conv2d *conv, int32_t r, int32_t at)
{
    const struct mlf_depthwise_axis *const inner = &conv->image->inner;
    const struct mlf_depthwise_axis *const outer = &conv->image->outer;
    const int32_t y = r - outer->padding;
    const int inside = y >= 0 && y < outer->input;
    const int8_t *const from = inside ? conv->input + y * outer->input_step : conv->fill;
    const int32_t step = inside ? inner->input_step : 0;
    const int32_t odd = inner->padding & 1; /* rows of planes begin at even addresses */
    const int32_t rest = inner->input - odd;
    const struct mlf_planes_row row = {conv->fill, odd, rest >> 1, rest & 1};
    int8_t *const to = conv->memory + at * conv->pitch + inner->padding;
    int32_t c = 0;
    for (; c + 8 <= conv->channels; c += 8) {
        mlf_planes_insert8(to - odd, from + c, step, &row, conv->offsets + c);
    }
    if (c < conv->channels) {
        mlf_depthwise_insert8(to, 1, from + c, step, inner->input, conv->channels - c, conv->offsets + c);
    }
}

/* Compute `pairs` pairs of rows of the block's channels, from row `at` of the planes. */
MLF_SHARED void mlf_planes_pairs(struct mlf_planes_conv2d *conv, int32_t at, int32_t pairs, const int8_t *weights,
                                 const struct mlf_brief *channels, int8_t *output)
{
    conv->planes.plane = conv->memory + at * conv->pitch;
    conv->planes.output = output;
    conv->planes.weights = weights;
    conv->planes.channels = channels;
    conv->planes.count = conv->channels;
    conv->planes.pairs = pairs;
    mlf_planes_run(&conv->planes);
}

/* Compute all rows of a block of channels, whose first outputs are at `output`. */
MLF_KERNEL void mlf_planes_block(struct mlf_planes_conv2d *conv, int32_t band, const int8_t *weights,
                                 const struct mlf_brief *channels, int8_t *output)
{
    const struct mlf_depthwise_axis *const outer = &conv->image->outer;
    (void)mlf_fill_mve(conv->memory, *conv->fill, conv->channels * conv->planes.size);
    for (int32_t y = 0; y < outer->output; y += band) {
        const int32_t rows = outer->output - y < band ? outer->output - y : band;
        for (int32_t c = 0; y > 0 && c < conv->channels; c++) {
            int8_t *const plane = conv->memory + c * conv->planes.size;
            (void)mlf_copy_mve(plane, plane + band * conv->pitch, 2 * conv->pitch);
        }
        for (int32_t at = y > 0 ? 2 : 0; at < rows + 2; at++) {
            mlf_planes_insert(conv, y + at, at);
        }
        mlf_planes_pairs(conv, 0, rows / 2, weights, channels, output + y * outer->output_step);
        if (rows % 2 != 0) { /* the last row together with the one before */
            mlf_planes_pairs(conv, rows - 2, 1, weights, channels, output + (y + rows - 2) * outer->output_step);
        }
    }
}

/*
 * Weights are [channel, outer tap, inner tap]. `most` channels at a time are copied, up to 16, and `band` rows are
 * computed, all or an even number that leaves no single row. Scratch memory: 16 bytes for a pixel of padding, a plane
 * of band + 2 rows of `pitch` bytes, an even number, for each of these channels, and 16 bytes.
 */
MLF_SHARED void mlf_depthwise_planes_int8_mve(const struct mlf_depthwise_image *image, int8_t fill,
                                              const int8_t *input, const int8_t *weights,
                                              const struct mlf_brief *channels, int32_t pitch, int32_t most,
                                              int32_t band, int8_t *scratch, int8_t *output)
{
    const struct mlf_depthwise_axis *const inner = &image->inner;
    const struct mlf_depthwise_axis *const outer = &image->outer;
    const int32_t last = (inner->output + 3) % 4; /* column of the last group */
    struct mlf_planes_conv2d conv = {
        .image = image,
        .fill = scratch,
        .memory = scratch + 16,
        .pitch = pitch,
        .planes = {
            .size = (band + 2) * pitch,
            .further = (inner->output - 1) / 4,
            .row_step = 2 * outer->output_step,
            .step = 4 * inner->output_step,
            .patches = 2 * pitch - 4 * ((inner->output + 3) / 4),
            .outputs = 2 * outer->output_step - (inner->output - 1) / 4 * 4 * inner->output_step,
            .columns = inner->output,
        },
    };
    for (int32_t i = 0; i < 8; i++) {
        const int32_t x = i / 2 % 2 + i % 2 * 2;
        conv.planes.patch[i] = (uint16_t)(i / 2 * pitch + i % 2 * 2);
        conv.planes.scatter[i] = (uint16_t)(i / 4 * outer->output_step + x * inner->output_step);
        conv.planes.mask |= x <= last ? 3 << (2 * i) : 0;
    }
    for (int32_t i = 0; i < 16; i++) {
        conv.planes.order[i] = (uint8_t)(i / 4 * 3 + i % 4);
        conv.offsets[i] = (uint16_t)(i * conv.planes.size);
    }
    (void)mlf_fill_mve(scratch, fill, 16);
    for (int32_t n = 0; n < image->batches; n++) {
        for (int32_t c = 0; c < image->channels; c += conv.channels) {
            conv.channels = image->channels - c < most ? image->channels - c : most;
            conv.input = input + n * inner->input * outer->input * image->channels + c;
            mlf_planes_block(&conv, band, weights + 9 * c, channels + c,
                             output + n * inner->output * outer->output * image->channels + c);
        }
    }
}

#endif /* MLF_DEPTHWISE_PLANES_MVE_H_ */
