/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * TREE_ENSEMBLE with trees that can be replaced by others of another shape. `stream` has `room` items of two words:
 *
 *    root   for each tree, the number of the item it begins with, and 0; an item of zeros ends the list
 *    node   feature, and in the bits above feature_bits the number of items between the next one and the second child;
 *           the threshold in the form of tree_ensemble.h. The next item is the first child.
 *    vote   MLF_TREE_VOTE and the target; the weight. A leaf is one or more votes, the last with MLF_TREE_LAST.
 *
 * Nothing in the stream is trusted: features, targets and numbers of items out of range are not used, and a tree goes
 * on to items behind only, so that each ends.
 */
#ifndef MLF_TREE_STREAM_H_
#define MLF_TREE_STREAM_H_

#include "tree_ensemble.h"

#define MLF_TREE_VOTE UINT32_C(0x80000000)
#define MLF_TREE_LAST UINT32_C(0x40000000)

/* The struct's type, nan, aggregate, rows, row_size and feature_bits count. */
MLF_KERNEL void mlf_tree_stream(const struct mlf_tree_ensemble *shape, uint32_t width, uint32_t room,
                                const uint32_t *stream, const float *base, const void *input, float *output)
{
    const uint32_t targets = (uint32_t)shape->targets;
    const uint8_t *row = (const uint8_t *)input;
    for (int32_t i = 0; i < shape->rows; i++) {
        memcpy(output, base, targets * sizeof(float));
        for (uint32_t tree = 0; tree < room && stream[2u * tree] != 0u; tree++) {
            uint32_t at = stream[2u * tree];
            while (at < room && stream[2u * at] < MLF_TREE_VOTE) {
                const uint32_t head = stream[2u * at];
                uint32_t feature = head & (((uint32_t)1 << shape->feature_bits) - 1u);
                int32_t nan_first = 0;
                if (shape->nan == MLF_TREE_NAN_MIXED) {
                    nan_first = (int32_t)(feature & 1u);
                    feature >>= 1;
                }
                feature = feature < width ? feature : 0u;
                if (mlf_tree_value(shape, row, feature, nan_first) >= (int32_t)stream[2u * at + 1u]) {
                    at += head >> shape->feature_bits;
                }
                at++;
            }
            for (int more = 1; more && at < room; at++) {
                const uint32_t target = stream[2u * at] & ~(MLF_TREE_VOTE | MLF_TREE_LAST);
                if (target < targets) {
                    mlf_tree_vote(shape, mlf_float_of_bits(stream[2u * at + 1u]), output + target);
                }
                more = (stream[2u * at] & MLF_TREE_LAST) == 0u;
            }
        }
        row += shape->row_size;
        output += targets;
    }
}

#endif /* MLF_TREE_STREAM_H_ */
