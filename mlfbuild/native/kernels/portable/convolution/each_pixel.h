/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* The loops over the output of a convolution, which evaluate a call for each pixel. */
#ifndef MLF_EACH_PIXEL_H_
#define MLF_EACH_PIXEL_H_

#include <stdint.h>

#include "window.h"

/*
 * Evaluate `call` for each pixel of the output. It uses the variables `rows` and `columns`, the taps of the pixel's
 * window. `input` moves from image to image and `output` from pixel to pixel.
 */
#define MLF_EACH_PIXEL(window, input, output, call)                                                                    \
    do {                                                                                                               \
        for (int32_t batch = 0; batch < (window)->batches; batch++) {                                                  \
            for (int32_t y = 0; y < (window)->output.height; y++) {                                                    \
                const struct mlf_taps rows = mlf_rows((window), y);                                                    \
                for (int32_t x = 0; x < (window)->output.width; x++) {                                                 \
                    const struct mlf_taps columns = mlf_columns((window), x);                                          \
                    (call);                                                                                            \
                    (output) += (window)->output_channels;                                                             \
                }                                                                                                      \
            }                                                                                                          \
            (input) += (window)->input.height * (window)->input.width * (window)->input_channels;                      \
        }                                                                                                              \
    } while (0)

#endif /* MLF_EACH_PIXEL_H_ */
