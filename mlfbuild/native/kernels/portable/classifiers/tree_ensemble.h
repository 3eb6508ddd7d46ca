/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TREE_ENSEMBLE: decision trees as tables; input [rows, width], output [rows, targets].
 *
 * ``nodes`` is a stream of words. A node begins with two: its feature, and the number of words from here to the node or
 * leaf that follows if the feature is not less than the threshold; if it is less, what is behind the node follows. A
 * leaf is a negative word: -1 - v has the first vote v. The forms differ in the place of the threshold:
 *
 *    shared  int16, 2 words: thresholds[p], p in the bits of the first word above feature_bits; by_feature, the
 *            thresholds of each feature are together, and p is relative to starts[feature]
 *    half    int16, 4 words: the third and the fourth word are the lower and the upper half of the threshold
 *    word    int32, 3 words: the third word is the threshold
 *
 * So a node takes 5, 9 or 14 bytes on average, with the leaves. Equal leaves have the same votes.
 *
 * Integer features are compared as they are, floats as integers, without a floating-point unit and exactly: the bits of
 * a float, with all others inverted if the sign is set, are ordered like the numbers, -0 just below 0. NaN of either sign
 * is beyond both ends of that order, so adding a constant moves all NaN to the low end (they go to the first child) or
 * to the high end (to the second one). Thresholds are stored with the constant added, and 1 larger than the number,
 * which is still less. A node takes about 15 instructions on a Cortex-M4, and 11 with integer features.
 *
 * Trees may also be code of the model, which uses only mlf_tree_positions.
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
    MLF_TREE_NAN_MIXED   /* or to the first child if bit 0 of the feature is set; the feature is in the bits above. */
};

enum { MLF_TREE_SUM, MLF_TREE_MIN, MLF_TREE_MAX };

enum { MLF_TREE_FLOAT32, MLF_TREE_INT8, MLF_TREE_UINT8, MLF_TREE_INT16, MLF_TREE_UINT16, MLF_TREE_INT32 };

struct mlf_tree_ensemble {
    int32_t rows;
    int32_t row_size; /* bytes */
    int32_t targets;
    int32_t trees;
    int32_t type;         /* of the features, of the constants above */
    int32_t nan;          /* of the constants above */
    int32_t aggregate;    /* of the constants above */
    int32_t by_tree;      /* a leaf has one vote: for targets[tree] if 1, for target 0 if 2 */
    int32_t feature_bits; /* of the form "shared" */
    int32_t by_feature;   /* of the form "shared" */
    int32_t target_bits;  /* if not 0, targets[v] has the position of the weight of vote v in the bits above */
};

/* The bits of a float as an integer in the order of the numbers; NaN is beyond both ends. */
MLF_KERNEL int32_t mlf_tree_bits(float value)
{
    const uint32_t bits = mlf_bits_of_float(value);
    return (int32_t)(bits ^ ((0u - (bits >> 31)) >> 1));
}

/* The integer that thresholds are compared with. NaN is below -INFINITY if it goes first, above INFINITY otherwise. */
MLF_KERNEL int32_t mlf_tree_value(const struct mlf_tree_ensemble *shape, const void *row, uint32_t feature,
                                  int32_t nan_first)
{
    switch (shape->type) {
    case MLF_TREE_INT8:
        return ((const int8_t *)row)[feature];
    case MLF_TREE_UINT8:
        return ((const uint8_t *)row)[feature];
    case MLF_TREE_INT16:
        return ((const int16_t *)row)[feature];
    case MLF_TREE_UINT16:
        return ((const uint16_t *)row)[feature];
    case MLF_TREE_INT32:
        return ((const int32_t *)row)[feature];
    default:
        return (int32_t)((uint32_t)mlf_tree_bits(((const float *)row)[feature]) + (nan_first ? 0x7fffffu : 0xff800001u));
    }
}

/*
 * The integers that trees in code compare: positions[i] is that of feature features[i]. NaN with the sign of the other
 * end is moved: all NaN are below -INFINITY if they go first, above INFINITY otherwise.
 */
MLF_KERNEL void mlf_tree_positions(const float *row, const uint16_t *features, int32_t count, int32_t nan_first,
                                   int32_t *positions)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t bits = mlf_tree_bits(row[features[i]]);
        if (nan_first ? bits > 0x7f800000 : bits < -0x7f800001) {
            bits = nan_first ? INT32_MIN : INT32_MAX;
        }
        positions[i] = bits;
    }
}

MLF_KERNEL void mlf_tree_vote(const struct mlf_tree_ensemble *shape, float weight, float *sum)
{
    if (shape->aggregate == MLF_TREE_SUM) {
        *sum += weight;
    } else if (shape->aggregate == MLF_TREE_MIN ? weight < *sum : weight > *sum) {
        *sum = weight;
    }
}

#define MLF_TREE_SHARED_THRESHOLD                                                                                      \
    thresholds[(first >> shape->feature_bits) + (shape->by_feature ? starts[feature] : 0)]
#define MLF_TREE_HALF_THRESHOLD (int32_t)((uint32_t)(uint16_t)at[2] | (uint32_t)(uint16_t)at[3] << 16)
#define MLF_TREE_WORD_THRESHOLD at[2]

/* If votes are not by tree, the highest bit of targets[v] is set in the last vote of a leaf. */
#define MLF_TREE_ENSEMBLE(name, word_type, words, mask, target_type, threshold)                                        \
    MLF_KERNEL int name##_less(const struct mlf_tree_ensemble *shape, const word_type *at, int32_t first,              \
                               const int32_t *thresholds, const uint16_t *starts, const uint8_t *row)                  \
    {                                                                                                                  \
        uint32_t feature = (uint32_t)first & (mask);                                                                   \
        int32_t nan_first = shape->nan == MLF_TREE_NAN_FIRST;                                                          \
        (void)at;                                                                                                      \
        (void)thresholds;                                                                                              \
        (void)starts;                                                                                                  \
        if (shape->nan == MLF_TREE_NAN_MIXED) {                                                                        \
            nan_first = (int32_t)(feature & 1u);                                                                       \
            feature >>= 1;                                                                                             \
        }                                                                                                              \
        return mlf_tree_value(shape, row, feature, nan_first) < (threshold);                                           \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void name(const struct mlf_tree_ensemble *shape, const word_type *nodes, const int32_t *roots,          \
                         const int32_t *thresholds, const uint16_t *starts, const target_type *targets,                \
                         const float *weights, const float *base, const void *input, float *output)                    \
    {                                                                                                                  \
        const uint32_t last = (uint32_t)1 << (8 * sizeof(target_type) - 1);                                            \
        const uint8_t *row = (const uint8_t *)input;                                                                   \
        (void)thresholds;                                                                                              \
        (void)starts;                                                                                                  \
        for (int32_t i = 0; i < shape->rows; i++) {                                                                    \
            memcpy(output, base, (uint32_t)shape->targets * sizeof(float));                                            \
            for (int32_t tree = 0; tree < shape->trees; tree++) {                                                      \
                const word_type *at = nodes + roots[tree];                                                             \
                int32_t first = at[0];                                                                                 \
                for (;;) {                                                                                             \
                    while (first >= 0 && name##_less(shape, at, first, thresholds, starts, row)) {                     \
                        at += words;                                                                                   \
                        first = at[0];                                                                                 \
                    }                                                                                                  \
                    if (first < 0) {                                                                                   \
                        break;                                                                                         \
                    }                                                                                                  \
                    at += at[1];                                                                                       \
                    first = at[0];                                                                                     \
                }                                                                                                      \
                int32_t vote = -1 - first;                                                                             \
                if (shape->by_tree) {                                                                                  \
                    mlf_tree_vote(shape, weights[vote], output + (shape->by_tree == 1 ? targets[tree] : 0));           \
                    continue;                                                                                          \
                }                                                                                                      \
                uint32_t target;                                                                                       \
                do {                                                                                                   \
                    target = targets[vote];                                                                            \
                    uint32_t to = target & ~last;                                                                      \
                    uint32_t weight = (uint32_t)vote;                                                                  \
                    if (shape->target_bits) {                                                                          \
                        weight = to >> shape->target_bits;                                                             \
                        to &= ((uint32_t)1 << shape->target_bits) - 1u;                                                \
                    }                                                                                                  \
                    mlf_tree_vote(shape, weights[weight], output + to);                                                \
                    vote++;                                                                                            \
                } while (!(target & last));                                                                            \
            }                                                                                                          \
            row += shape->row_size;                                                                                    \
            output += shape->targets;                                                                                  \
        }                                                                                                              \
    }

#define MLF_TREE_ENSEMBLES(suffix, target_type)                                                                        \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_shared_##suffix, int16_t, 2, ((uint32_t)1 << shape->feature_bits) - 1u,        \
                      target_type, MLF_TREE_SHARED_THRESHOLD)                                                          \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_half_##suffix, int16_t, 4, 0x7fffu, target_type, MLF_TREE_HALF_THRESHOLD)      \
    MLF_TREE_ENSEMBLE(mlf_tree_ensemble_word_##suffix, int32_t, 3, 0x7fffffffu, target_type, MLF_TREE_WORD_THRESHOLD)

MLF_TREE_ENSEMBLES(uint8, uint8_t)
MLF_TREE_ENSEMBLES(uint16, uint16_t)

#endif /* MLF_TREE_ENSEMBLE_H_ */
