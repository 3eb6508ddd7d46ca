/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TREE_ENSEMBLE: decision trees as tables; input [rows, width], output [rows, targets].
 *
 * Node i compares feature features[i] with a threshold and goes to children[2 * i] if it is less, else to
 * children[2 * i + 1]. A child of 0 or more is a node; -1 - v is the leaf with the first vote v. In the narrowest tables
 * a node takes 6 bytes: nodes share the thresholds that are equal, and indices[i] is the position of node i's.
 *
 * Floats are compared as integers, without a floating-point unit and exactly: the bits of a float, with all others
 * inverted if the sign is set, are ordered like the numbers, -0 just below 0. NaN of either sign is beyond both ends of
 * that order, so adding a constant moves all NaN to the low end (they go to the first child) or to the high end (to the
 * second one). Thresholds are stored with the constant added, and 1 larger than the number, which is still less; so a
 * node that no number passes has a threshold, too. A node takes about 14 instructions on a Cortex-M4.
 */
#ifndef MLF_TREE_ENSEMBLE_H_
#define MLF_TREE_ENSEMBLE_H_

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "float_math.h"

enum {
    MLF_TREE_NAN_SECOND, /* NaN goes to the second child of every node, */
    MLF_TREE_NAN_FIRST,  /* to the first child, */
    MLF_TREE_NAN_MIXED   /* or to the first child if bit 0 of features[i] is set; the feature is in the bits above. */
};

enum { MLF_TREE_SUM, MLF_TREE_MIN, MLF_TREE_MAX };

struct mlf_tree_ensemble {
    int32_t rows;
    int32_t width;
    int32_t targets;
    int32_t trees;
    int32_t nan;       /* of the constants above */
    int32_t aggregate; /* of the constants above */
    int32_t by_tree;   /* a leaf has one vote: for targets[tree] if 1, for target 0 if 2 */
};

/* The position of a float among all floats; NaN is below -INFINITY if it goes first, above INFINITY otherwise. */
MLF_KERNEL uint32_t mlf_tree_order(float value, int32_t nan_first)
{
    const uint32_t bits = mlf_bits_of_float(value);
    const uint32_t ordered = bits ^ ((0u - (bits >> 31)) >> 1);
    return ordered - (nan_first ? 0x7f800001u : 0x807fffffu);
}

MLF_KERNEL void mlf_tree_vote(const struct mlf_tree_ensemble *shape, float weight, float *sum)
{
    if (shape->aggregate == MLF_TREE_SUM) {
        *sum += weight;
    } else if (shape->aggregate == MLF_TREE_MIN ? weight < *sum : weight > *sum) {
        *sum = weight;
    }
}

/* If votes are not by tree, targets[v] has the target of vote v; its highest bit is set in the last one of a leaf. */
#define MLF_TREE_ENSEMBLE(name, feature_type, child_type, target_type, threshold_of_node)                              \
    MLF_KERNEL void name(const struct mlf_tree_ensemble *shape, const feature_type *features, const uint8_t *indices,  \
                         const int32_t *thresholds, const child_type *children, const child_type *roots,               \
                         const target_type *targets, const float *weights, const float *base, const float *input,      \
                         float *output)                                                                                \
    {                                                                                                                  \
        const uint32_t last = (uint32_t)1 << (8 * sizeof(target_type) - 1);                                            \
        (void)indices;                                                                                                 \
        for (int32_t row = 0; row < shape->rows; row++) {                                                              \
            memcpy(output, base, (uint32_t)shape->targets * sizeof(float));                                            \
            for (int32_t tree = 0; tree < shape->trees; tree++) {                                                      \
                int32_t at = roots[tree];                                                                              \
                while (at >= 0) {                                                                                      \
                    uint32_t feature = features[at];                                                                   \
                    int32_t nan_first = shape->nan == MLF_TREE_NAN_FIRST;                                              \
                    if (shape->nan == MLF_TREE_NAN_MIXED) {                                                            \
                        nan_first = (int32_t)(feature & 1u);                                                           \
                        feature >>= 1;                                                                                 \
                    }                                                                                                  \
                    const uint32_t order = mlf_tree_order(input[feature], nan_first);                                  \
                    const uint32_t threshold = (uint32_t)thresholds[threshold_of_node];                                \
                    at = children[2 * at + (order >= threshold)];                                                      \
                }                                                                                                      \
                int32_t vote = -1 - at;                                                                                \
                if (shape->by_tree) {                                                                                  \
                    mlf_tree_vote(shape, weights[vote], output + (shape->by_tree == 1 ? targets[tree] : 0));           \
                    continue;                                                                                          \
                }                                                                                                      \
                uint32_t target;                                                                                       \
                do {                                                                                                   \
                    target = targets[vote];                                                                            \
                    mlf_tree_vote(shape, weights[vote], output + (target & ~last));                                    \
                    vote++;                                                                                            \
                } while (!(target & last));                                                                            \
            }                                                                                                          \
            input += shape->width;                                                                                     \
            output += shape->targets;                                                                                  \
        }                                                                                                              \
    }

#define MLF_TREE_ENSEMBLES(suffix, target_type)                                                                        \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_shared_##suffix, uint8_t, int16_t, target_type, indices[at])                   \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_byte_##suffix, uint8_t, int16_t, target_type, at)                              \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_half_##suffix, uint16_t, int16_t, target_type, at)                             \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_word_##suffix, uint32_t, int32_t, target_type, at)

MLF_TREE_ENSEMBLES(uint8, uint8_t)
MLF_TREE_ENSEMBLES(uint16, uint16_t)

#endif /* MLF_TREE_ENSEMBLE_H_ */
