/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Inputs of the network and expected outputs: case 0 of tests/tones.npz. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdint.h>

static const int8_t sample_in_samples[32] = {
    93, 69, 35, -5, -44, -76, -96, -102, -93, -69, -35, 5, 44, 76, 96, 102, 93, 69, 35, -5, -44, -76, -96, -102,
    -93, -69, -35, 5, 44, 76, 96, 102,
};

static const int8_t sample_out_probabilities[4] = {
    127, -128, -128, -128,
};

#endif /* SAMPLE_H */
