/*
 * DEPTHWISE_CONV_2D on int8 for Helium (MVE), one output channel an input channel, filters of at most 16 taps; the sums
 * and what becomes of them are those of depthwise_conv2d.h.
 *
 * A channel at a time: its window is gathered in one vector, which one VMLADAV multiplies with the filter. For that the
 * rows under the filter are copied to a ring, planar and interleaved: for every channel, position and row, so that a
 * window of h rows and w columns is h * w neighbouring bytes, and the next one starts h * stride bytes on. Row r is in
 * slot r modulo h, and the filter's taps are permuted as its first row moves through the slots.
 *
 * Two pixels of four channels take 8 loads and 8 VMLADAV for 72 products of a 3x3 filter, and some 25 instructions to
 * rescale and store 8 outputs; a copied element takes a half. Rows are copied before output is written to their place,
 * so that output may take the place of the input.
 *
 * An inner axis runs along a row of the ring, an outer one from row to row: width and height, or height and width where
 * images are higher than wide.
 */
#ifndef MLF_DEPTHWISE_CONV2D_MVE_H_
#define MLF_DEPTHWISE_CONV2D_MVE_H_

#include <stdint.h>

#include "compiler.h"
#include "copy_mve.h"
#include "requantize_mve.h"

/* Channels of the ring: 16, and a rest that is no group of four. */
#define MLF_DEPTHWISE_BLOCK 16
#define MLF_DEPTHWISE_MOST 19

/* A row of output pixels; the assembly knows where the members stand. */
struct mlf_depthwise_row {
    int32_t zero_point;
    int32_t output_step; /* bytes from the outputs of a pair of pixels to those of the next */
    int32_t length;      /* bytes of the ring from the first pair's window to the one behind the last pair's */
    const struct mlf_channels4 *channels;
    const int8_t *weights; /* of a group of four channels, `taps` bytes each */
    int32_t taps;
    const int8_t *ring; /* the first window of a group */
    int8_t *output;
    int32_t groups;
    int32_t pitch;       /* bytes from a channel of the ring to the next */
    int32_t back;        /* bytes from a last window alone to the one behind it; 0 where pixels are even */
    int32_t output_back; /* and between their outputs */
    int32_t step;        /* bytes from a window to the next */
    int32_t minimum;
    int32_t maximum;
    const uint8_t *order; /* the tap of each of 16 bytes of a window */
    uint16_t scatter[8];  /* bytes from `output` to channel c of the first pixel at 2 * c, of the second behind it */
};

typedef void (*mlf_depthwise_function)(const struct mlf_depthwise_row *row);

#if defined(MLF_MVE)

/* The products of two windows of a channel; `pointer` goes on to the next pair. */
#define MLF_DEPTHWISE_CHANNEL(pointer, load, weights, first, second)                                                   \
    load("q0", pointer) "vmladav.s8 " first ", q0, " weights "\n" load("q1", pointer) "vmladav.s8 " second             \
                        ", q1, " weights "\n"
#define MLF_DEPTHWISE_LOAD_STEP3(x, pointer) "vldrb.u8 " x ", [" pointer "], #3\n"
#define MLF_DEPTHWISE_LOAD_STEP6(x, pointer) "vldrb.u8 " x ", [" pointer "], #6\n"
#define MLF_DEPTHWISE_LOAD_STEP(x, pointer) "vldrb.u8 " x ", [" pointer "]\n add " pointer ", r9\n"

/* q3 says where outputs go; roundings that need it for something else bring it back. */
#define MLF_DEPTHWISE_SCATTER "vldrh.u16 q3, [sp, #64]\n"
#define MLF_DEPTHWISE_SCATTER_RELU
#define MLF_DEPTHWISE_SCATTER_RIGHT MLF_DEPTHWISE_SCATTER
#define MLF_DEPTHWISE_SCATTER_ANY MLF_DEPTHWISE_SCATTER

/* The clamp of an activation; where it is all of int8, and so with a ReLU, VQMOVN does it. */
#define MLF_DEPTHWISE_BOUNDS                                                                                           \
    "vldrh.u16 q1, [sp, #96]\n vmax.s16 q0, q0, q1\n"                                                                  \
    "vldrh.u16 q1, [sp, #112]\n vmin.s16 q0, q0, q1\n"
#define MLF_DEPTHWISE_ALL "vqmovnb.s16 q0, q0\n"

/*
 * r1 r3 r5 r7 point to the windows of four channels, q4 to q7 hold their weights, r11 points to the output. On the
 * stack: the struct, with `length` become the end of the group; at 80 the order of the taps, at 96 and 112 the clamp,
 * at 128 what is left of `back`, at 132 `length`.
 */
#define MLF_DEPTHWISE(name, load, rounding, clamp)                                                                     \
    MLF_ASSEMBLY name(const struct mlf_depthwise_row *row MLF_UNUSED)                                                  \
    {                                                                                                                  \
        __asm__(MLF_ENTER "sub sp, #136\n"                                                                             \
                "vldrw.u32 q0, [r0]\n vldrw.u32 q1, [r0, #16]\n vldrw.u32 q2, [r0, #32]\n vldrw.u32 q3, [r0, #48]\n"   \
                "vldrh.u16 q4, [r0, #64]\n"                                                                            \
                "mov r7, sp\n"                                                                                         \
                "vstrw.32 q0, [r7]\n vstrw.32 q1, [r7, #16]\n vstrw.32 q2, [r7, #32]\n vstrw.32 q3, [r7, #48]\n"       \
                "vstrw.32 q4, [r7, #64]\n"                                                                             \
                "ldrd r1, r2, [sp, #52]\n ldr r3, [sp, #60]\n"                                                         \
                "vdup.16 q0, r1\n vdup.16 q1, r2\n vldrb.u8 q2, [r3]\n"                                                \
                "vstrw.32 q2, [r7, #80]\n vstrw.32 q0, [r7, #96]\n vstrw.32 q1, [r7, #112]\n"                          \
                "ldr r1, [sp, #8]\n str r1, [sp, #132]\n"                                                              \
                "ldr r9, [sp, #48]\n ldr r1, [sp, #20]\n vctp.8 r1\n"                                                  \
                "1: ldrd r0, r2, [sp, #16]\n"                                                                          \
                "vldrb.u8 q3, [sp, #80]\n"                                                                             \
                "adds r4, r0, r2\n adds r6, r4, r2\n add r8, r6, r2\n add r10, r8, r2\n"                               \
                "vpstttt\n"                                                                                            \
                "vldrbt.u8 q4, [r0, q3]\n vldrbt.u8 q5, [r4, q3]\n vldrbt.u8 q6, [r6, q3]\n vldrbt.u8 q7, [r8, q3]\n"  \
                "str r10, [sp, #16]\n"                                                                                 \
                "ldrd r1, r11, [sp, #24]\n ldrd r0, r2, [sp, #36]\n str r2, [sp, #128]\n"                              \
                "adds r3, r1, r0\n adds r5, r3, r0\n adds r7, r5, r0\n adds r0, r7, r0\n add r2, r11, #4\n"            \
                "strd r0, r2, [sp, #24]\n"                                                                             \
                "ldr r2, [sp, #132]\n add r2, r1\n str r2, [sp, #8]\n" MLF_DEPTHWISE_SCATTER                           \
                "2:\n" MLF_DEPTHWISE_CHANNEL("r1", load, "q4", "r0", "r8")                                             \
                MLF_DEPTHWISE_CHANNEL("r3", load, "q5", "r2", "r10")                                                   \
                MLF_DEPTHWISE_CHANNEL("r5", load, "q6", "r4", "r12")                                                   \
                MLF_DEPTHWISE_CHANNEL("r7", load, "q7", "r6", "lr") MLF_SUMS_TO_VECTORS                                \
                "ldm sp, {r0, r2, r4, r6}\n" MLF_RESCALE_##rounding(MLF_BOTH, "r6") MLF_DEPTHWISE_SCATTER_##rounding   \
                "vqmovnb.s32 q0, q0\n vqmovnt.s32 q0, q1\n"                                                            \
                "vqadd.s16 q0, q0, r0\n" clamp                                                                         \
                "vstrb.16 q0, [r11, q3]\n"                                                                             \
                "add r11, r2\n"                                                                                        \
                "cmp r1, r4\n bne 2b\n"                                                                                \
                "ldr r0, [sp, #128]\n cbz r0, 3f\n" /* the last pixel again with the one before it */                  \
                "subs r1, r0\n subs r3, r0\n subs r5, r0\n subs r7, r0\n adds r4, r0\n str r4, [sp, #8]\n"             \
                "ldr r0, [sp, #44]\n sub r11, r0\n"                                                                    \
                "movs r0, #0\n str r0, [sp, #128]\n"                                                                   \
                "b 2b\n"                                                                                               \
                "3: str r6, [sp, #12]\n"                                                                               \
                "ldr r0, [sp, #32]\n subs r0, #1\n str r0, [sp, #32]\n bne 1b\n"                                       \
                "add sp, #136\n" MLF_LEAVE);                                                                           \
    }

/*
 * Copy `count` pixels of up to 8 channels into a slot of the ring: from `from`, `step` bytes apart, to `to`, `rows`
 * bytes apart; `offsets` are those of the channels.
 */
MLF_KERNEL void mlf_depthwise_insert8(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                      int32_t channels, const uint16_t *offsets)
{
    __asm__ volatile("vldrh.u16 q1, [%4]\n"
                     "vctp.16 %5\n"
                     "dls lr, %6\n"
                     "1: vpstt\n"
                     "vldrbt.u16 q0, [%1]\n"
                     "vstrbt.16 q0, [%0, q1]\n"
                     "add %1, %3\n"
                     "add %0, %2\n"
                     "le lr, 1b\n"
                     : "+r"(to), "+l"(from)
                     : "r"(rows), "r"(step), "r"(offsets), "r"(channels), "r"(count)
                     : "lr", "q0", "q1", "memory");
}

MLF_KERNEL void mlf_depthwise_insert16(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                       const uint16_t *offsets)
{
    __asm__ volatile("vldrh.u16 q2, [%4]\n"
                     "vldrh.u16 q3, [%4, #16]\n"
                     "dls lr, %5\n"
                     "1: vldrb.u16 q0, [%1]\n"
                     "vstrb.16 q0, [%0, q2]\n"
                     "vldrb.u16 q1, [%1, #8]\n"
                     "vstrb.16 q1, [%0, q3]\n"
                     "add %1, %3\n"
                     "add %0, %2\n"
                     "le lr, 1b\n"
                     : "+r"(to), "+l"(from)
                     : "r"(rows), "r"(step), "r"(offsets), "r"(count)
                     : "lr", "q0", "q1", "q2", "q3", "memory");
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

MLF_KERNEL void mlf_depthwise_insert8(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                      int32_t channels, const uint16_t *offsets)
{
    for (int32_t x = 0; x < count; x++) {
        for (int32_t c = 0; c < (channels < 8 ? channels : 8); c++) {
            to[x * rows + offsets[c]] = from[x * step + c];
        }
    }
}

MLF_KERNEL void mlf_depthwise_insert16(int8_t *to, int32_t rows, const int8_t *from, int32_t step, int32_t count,
                                       const uint16_t *offsets)
{
    mlf_depthwise_insert8(to, rows, from, step, count, 8, offsets);
    mlf_depthwise_insert8(to, rows, from + 8, step, count, 8, offsets + 8);
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

/* An axis of the image; steps are bytes from a pixel to the next. */
struct mlf_depthwise_axis {
    int32_t input;
    int32_t output;
    int32_t filter;
    int32_t stride;
    int32_t padding; /* before the image */
    int32_t input_step;
    int32_t output_step;
};

struct mlf_depthwise_image {
    int32_t batches;
    int32_t channels; /* at least 4 */
    struct mlf_depthwise_axis inner; /* of at least two output pixels */
    struct mlf_depthwise_axis outer;
};

/* A block of channels under way. */
struct mlf_depthwise_block {
    const struct mlf_depthwise_image *image;
    const int8_t *input;
    int8_t *ring;
    const int8_t *fill; /* a pixel of padding */
    int32_t channels;
    int32_t pitch;
    uint16_t offsets[24]; /* of channels in the ring, the rest beyond them unused */
};

/* Copy row r of the padded image into its slot. A function of its own, since it changes the predicate, as calls do. */
MLF_SHARED void mlf_depthwise_insert(const struct mlf_depthwise_block *block, int32_t r)
{
    const struct mlf_depthwise_axis *const inner = &block->image->inner;
    const struct mlf_depthwise_axis *const outer = &block->image->outer;
    const int32_t y = r - outer->padding;
    const int inside = y >= 0 && y < outer->input;
    const int8_t *const from = inside ? block->input + y * outer->input_step : block->fill;
    const int32_t step = inside ? inner->input_step : 0;
    int8_t *const to = block->ring + inner->padding * outer->filter + r % outer->filter;
    int32_t c = 0;
    if (block->channels >= 16) {
        mlf_depthwise_insert16(to, outer->filter, from, step, inner->input, block->offsets);
        c = 16;
    }
    for (; c < block->channels; c += 8) {
        mlf_depthwise_insert8(to, outer->filter, from + c, step, inner->input, block->channels - c,
                              block->offsets + c);
    }
}

/* Compute a row of all channels of a block; a rest that is no group of four is computed with those before it. */
MLF_KERNEL void mlf_depthwise_groups(const struct mlf_depthwise_block *block, const struct mlf_depthwise_row *all,
                                     mlf_depthwise_function multiply)
{
    const int32_t rest = block->channels % 4;
    multiply(all);
    if (rest != 0) {
        const int32_t first = block->channels - 4;
        struct mlf_depthwise_row row = *all;
        row.channels += row.groups;
        row.weights += first * row.taps;
        row.ring += first * row.pitch;
        row.output += first;
        row.groups = 1;
        multiply(&row);
    }
}

MLF_KERNEL void mlf_depthwise_block_mve(const struct mlf_depthwise_block *block, struct mlf_depthwise_row *row,
                                        const uint8_t *order, mlf_depthwise_function multiply)
{
    const struct mlf_depthwise_axis *const outer = &block->image->outer;
    int8_t *const output = row->output;
    int32_t next = 0;
    mlf_fill_mve(block->ring, *block->fill, block->channels * block->pitch);
    for (int32_t y = 0; y < outer->output; y++) {
        const int32_t first = y * outer->stride;
        for (next = next < first ? first : next; next < first + outer->filter; next++) {
            mlf_depthwise_insert(block, next);
        }
        row->order = order + 16 * (first % outer->filter);
        row->output = output + y * outer->output_step;
        mlf_depthwise_groups(block, row, multiply);
    }
}

/*
 * Weights are [channel, inner tap, outer tap]. `order` has 16 bytes for each slot of the filter's first row. Where
 * channels are no multiple of four, the last of `channels` has the last four of them. Scratch memory: 16 bytes, twice
 * MLF_DEPTHWISE_BLOCK for a pixel of padding, and the ring: of up to MLF_DEPTHWISE_MOST channels, each of the outer
 * filter's rows times what the inner axis needs of the padded image.
 */
MLF_SHARED void mlf_depthwise_conv2d_int8_mve(const struct mlf_depthwise_image *image,
                                              const struct mlf_quantization *quantization, const int8_t *input,
                                              const int8_t *weights, const struct mlf_channels4 *channels,
                                              const uint8_t *order, mlf_depthwise_function multiply, void *scratch,
                                              int8_t *output)
{
    const struct mlf_depthwise_axis *const inner = &image->inner;
    const struct mlf_depthwise_axis *const outer = &image->outer;
    int8_t *const fill = scratch;
    const int32_t wide = (inner->output - 1) * inner->stride + inner->filter;
    const int32_t reach = inner->padding + inner->input;
    struct mlf_depthwise_block block = {
        .image = image,
        .ring = fill + 2 * MLF_DEPTHWISE_BLOCK,
        .fill = fill,
        .pitch = outer->filter * (wide > reach ? wide : reach),
    };
    struct mlf_depthwise_row row = {
        .zero_point = quantization->output_zero_point,
        .minimum = quantization->minimum,
        .maximum = quantization->maximum,
        .taps = inner->filter * outer->filter,
        .pitch = block.pitch,
        .step = inner->stride * outer->filter,
        .output_step = 2 * inner->output_step,
    };
    row.length = inner->output / 2 * 2 * row.step;
    row.back = inner->output % 2 * row.step;
    row.output_back = inner->output_step;
    for (int32_t c = 0; c < 4; c++) {
        row.scatter[2 * c] = (uint16_t)c;
        row.scatter[2 * c + 1] = (uint16_t)(c + inner->output_step);
    }
    for (int32_t c = 0; c < 24; c++) {
        block.offsets[c] = (uint16_t)(c * block.pitch);
    }
    mlf_fill_mve(fill, (int8_t)quantization->input_zero_point, 2 * MLF_DEPTHWISE_BLOCK);
    for (int32_t n = 0; n < image->batches; n++) {
        for (int32_t c = 0; c < image->channels; c += block.channels) {
            const int32_t left = image->channels - c;
            block.channels = left <= MLF_DEPTHWISE_MOST ? left : MLF_DEPTHWISE_BLOCK;
            block.input = input + n * inner->input * outer->input * image->channels + c;
            row.ring = block.ring;
            row.weights = weights + c * row.taps;
            row.channels = channels + c / 4;
            row.output = output + n * inner->output * outer->output * image->channels + c;
            row.groups = block.channels / 4;
            mlf_depthwise_block_mve(&block, &row, order, multiply);
        }
    }
}

#endif /* MLF_DEPTHWISE_CONV2D_MVE_H_ */
