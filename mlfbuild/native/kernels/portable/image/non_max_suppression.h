/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Detections: the boxes with the best scores that do not overlap a better one. A box is two opposite corners (y, x, y,
 * x) in float32.
 *
 * Candidates are positions of boxes in ascending order. Each step finds the best one, and removes those that overlap
 * it: (detections + 1) * candidates comparisons at most, without sorting.
 */
#ifndef MLF_NON_MAX_SUPPRESSION_H_
#define MLF_NON_MAX_SUPPRESSION_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

struct mlf_box_corners {
    float low[2], high[2];
};

MLF_KERNEL struct mlf_box_corners mlf_corners_of_box(const float *box)
{
    struct mlf_box_corners corners;
    for (int axis = 0; axis < 2; axis++) {
        const float a = box[axis];
        const float b = box[axis + 2];
        corners.low[axis] = a < b ? a : b;
        corners.high[axis] = a < b ? b : a;
    }
    return corners;
}

/* Return the intersection divided by the union; 0 if a box has no area. */
MLF_KERNEL float mlf_overlap(const float *first, const float *second)
{
    const struct mlf_box_corners a = mlf_corners_of_box(first);
    const struct mlf_box_corners b = mlf_corners_of_box(second);
    float sides[2];
    for (int axis = 0; axis < 2; axis++) {
        const float low = a.low[axis] > b.low[axis] ? a.low[axis] : b.low[axis];
        const float high = a.high[axis] < b.high[axis] ? a.high[axis] : b.high[axis];
        sides[axis] = high - low > 0.0f ? high - low : 0.0f;
    }
    const float area_a = (a.high[0] - a.low[0]) * (a.high[1] - a.low[1]);
    const float area_b = (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
    if (!(area_a > 0.0f && area_b > 0.0f)) {
        return 0.0f;
    }
    const float shared = sides[0] * sides[1];
    return shared / (area_a + area_b - shared);
}

/* Return the candidate with the greatest score; the first of several. */
MLF_KERNEL int32_t mlf_best_candidate(const float *scores, const int32_t *candidates, int32_t count)
{
    int32_t best = candidates[0];
    for (int32_t i = 1; i < count; i++) {
        if (scores[candidates[i]] > scores[best]) {
            best = candidates[i];
        }
    }
    return best;
}

/* Remove the candidates that overlap box `best` by more than `limit`, and `best`. Return how many remain. */
MLF_SHARED int32_t mlf_suppress(const float *boxes, int32_t best, float limit, int32_t *candidates, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t box = candidates[i];
        if (box != best && !(mlf_overlap(boxes + 4 * best, boxes + 4 * box) > limit)) {
            candidates[kept++] = box;
        }
    }
    return kept;
}

/* Remove the candidates that overlap box `best` by `limit` or more; `best` remains if it has no area. */
MLF_SHARED int32_t mlf_suppress_inclusive(const float *boxes, int32_t best, float limit, int32_t *candidates,
                                          int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t box = candidates[i];
        if (!(mlf_overlap(boxes + 4 * best, boxes + 4 * box) >= limit)) {
            candidates[kept++] = box;
        }
    }
    return kept;
}

/* NON_MAX_SUPPRESSION_V4, and V5 with `best_scores`: boxes [boxes, 4], scores [boxes], outputs [most], a number. */
MLF_KERNEL void mlf_non_max_suppression_float(int32_t box_count, int32_t most, float limit, float least,
                                              const float *boxes, const float *scores, int32_t *candidates,
                                              int32_t *positions, float *best_scores, int32_t *found)
{
    int32_t count = 0;
    for (int32_t i = 0; i < box_count; i++) {
        if (scores[i] > least) {
            candidates[count++] = i;
        }
    }
    const int32_t greatest = count < most ? count : most;
    int32_t row = 0;
    while (count > 0 && row < greatest) {
        const int32_t best = mlf_best_candidate(scores, candidates, count);
        positions[row] = best;
        if (best_scores) {
            best_scores[row] = scores[best];
        }
        row++;
        count = mlf_suppress_inclusive(boxes, best, limit, candidates, count);
    }
    *found = row;
    for (; row < most; row++) {
        positions[row] = 0;
        if (best_scores) {
            best_scores[row] = 0.0f;
        }
    }
}

/*
 * NON_MAX_SUPPRESSION: boxes [batches, boxes, 4], scores [batches, classes, boxes], rows [capacity, 3] of batch, class
 * and position, -1 after those found, and their number. A score must be above `least`, unless that is -infinity.
 */
MLF_KERNEL void mlf_select_boxes_float(int32_t batches, int32_t classes, int32_t box_count, int32_t capacity,
                                       const float *boxes, const float *scores, int64_t most, float overlap,
                                       float least, int32_t *candidates, int64_t *rows, int64_t *found)
{
    int32_t row = 0;
    for (int32_t batch = 0; batch < batches; batch++) {
        for (int32_t label = 0; label < classes; label++) {
            int32_t count = 0;
            for (int32_t i = 0; i < box_count; i++) {
                if (scores[i] > least || (least < -3.402823466e+38f && scores[i] == scores[i])) {
                    candidates[count++] = i;
                }
            }
            for (int64_t chosen = 0; chosen < most && count > 0 && row < capacity; chosen++) {
                const int32_t best = mlf_best_candidate(scores, candidates, count);
                rows[3 * row] = batch;
                rows[3 * row + 1] = label;
                rows[3 * row + 2] = best;
                row++;
                count = mlf_suppress(boxes, best, overlap, candidates, count);
            }
            scores += box_count;
        }
        boxes += 4 * box_count;
    }
    *found = row;
    for (int32_t i = 3 * row; i < 3 * capacity; i++) {
        rows[i] = -1;
    }
}

/*
 * Return e^x, 0 below the normal range of double: a Taylor polynomial of degree 13 in the difference from the nearest
 * multiple of ln 2. The relative error is about 1e-16, so that its product in float32 is the one of the C library.
 */
MLF_SHARED double mlf_box_exp(double x)
{
    if (!(x > -708.0)) {
        return x <= -708.0 ? 0.0 : x;
    }
    if (x > 709.7) {
        return (double)INFINITY;
    }
    const int32_t n = (int32_t)(x * 1.4426950408889634 + (x < 0.0 ? -0.5 : 0.5));
    const double r = (x - (double)n * 6.93147180369123816490e-01) - (double)n * 1.90821492927058770002e-10;
    double power = 1.0;
    for (int32_t i = 13; i > 0; i--) {
        power = 1.0 + power * r / (double)i;
    }
    const uint64_t bits = (uint64_t)(n / 2 + 1023) << 52;
    const uint64_t more = (uint64_t)(n - n / 2 + 1023) << 52;
    double scale;
    double rest;
    memcpy(&scale, &bits, sizeof scale);
    memcpy(&rest, &more, sizeof rest);
    return power * scale * rest;
}

/* TFLite_Detection_PostProcess; `classes` is the number of scores of a box, of which the last `labels` are classes. */
struct mlf_detector {
    int32_t boxes, numbers, classes, labels; /* numbers: those of a box, of which 4 are read */
    int32_t detections, per_anchor, per_class;
    float score, overlap;
    float scales[4];
};

/* A stored number q is scale * (q - zero_point). */
struct mlf_affine {
    float scale;
    int32_t zero_point;
};

MLF_KERNEL float mlf_real_float(float value, struct mlf_affine affine)
{
    (void)affine;
    return value;
}

MLF_KERNEL float mlf_real_int8(int8_t value, struct mlf_affine affine)
{
    return (float)(value - affine.zero_point) * affine.scale;
}

/* Centre and half of the size of a box along one axis, in double as TensorFlow Lite Micro computes them. */
MLF_KERNEL void mlf_decode_side(float centre, float size, float centre_scale, float size_scale, float anchor_centre,
                                float anchor_size, float *low, float *high)
{
    const float middle = (float)((double)centre / (double)centre_scale * (double)anchor_size + (double)anchor_centre);
    const float half = (float)(0.5 * mlf_box_exp((double)size / (double)size_scale) * (double)anchor_size);
    *low = middle - half;
    *high = middle + half;
}

#define MLF_DECODE_BOXES(type, c_type)                                                                                 \
    MLF_KERNEL void mlf_decode_boxes_##type(const struct mlf_detector *detector, const c_type *encoded,                \
                                            struct mlf_affine affine, const c_type *anchors,                           \
                                            struct mlf_affine anchor_affine, float *boxes)                             \
    {                                                                                                                  \
        for (int32_t i = 0; i < detector->boxes; i++) {                                                                \
            float box[4];                                                                                              \
            float anchor[4];                                                                                           \
            for (int32_t at = 0; at < 4; at++) {                                                                       \
                box[at] = mlf_real_##type(encoded[at], affine);                                                        \
                anchor[at] = mlf_real_##type(anchors[at], anchor_affine);                                              \
            }                                                                                                          \
            for (int32_t axis = 0; axis < 2; axis++) {                                                                 \
                mlf_decode_side(box[axis], box[axis + 2], detector->scales[axis], detector->scales[axis + 2],          \
                                anchor[axis], anchor[axis + 2], boxes + axis, boxes + axis + 2);                       \
            }                                                                                                          \
            encoded += detector->numbers;                                                                              \
            anchors += 4;                                                                                              \
            boxes += 4;                                                                                                \
        }                                                                                                              \
    }

MLF_DECODE_BOXES(float, float)
MLF_DECODE_BOXES(int8, int8_t)

MLF_KERNEL int32_t mlf_candidates(const struct mlf_detector *detector, const float *scores, int32_t *candidates)
{
    int32_t count = 0;
    for (int32_t i = 0; i < detector->boxes; i++) {
        if (scores[i] >= detector->score) {
            candidates[count++] = i;
        }
    }
    return count;
}

MLF_KERNEL void mlf_clear_detections(int32_t row, int32_t rows, float *boxes, float *classes, float *scores)
{
    for (; row < rows; row++) {
        for (int32_t at = 0; at < 4; at++) {
            boxes[4 * row + at] = 0.0f;
        }
        classes[row] = 0.0f;
        scores[row] = 0.0f;
    }
}

/*
 * Write the detections: boxes [rows, 4], classes [rows], scores [rows], and their number. `decoded` are the corners of
 * all boxes; `best` and `candidates`, of as many elements as there are boxes, are scratch memory.
 *
 * With mlf_detect_anchors, an anchor takes part with its best class, and its rows have its `per_anchor` best classes;
 * NaN is ignored.
 * With mlf_detect_classes, each class is suppressed on its own, and its best `per_class` are inserted into the rows
 * that the classes before it have filled.
 */
#define MLF_DETECT(type, c_type)                                                                                       \
    MLF_KERNEL void mlf_detect_anchors_##type(const struct mlf_detector *detector, const float *decoded,               \
                                              const c_type *input, struct mlf_affine affine, float *best,              \
                                              int32_t *candidates, float *boxes, float *classes, float *scores,        \
                                              float *found)                                                            \
    {                                                                                                                  \
        const c_type *const labelled = input + detector->classes - detector->labels;                                   \
        for (int32_t i = 0; i < detector->boxes; i++) {                                                                \
            const c_type *const own = labelled + i * detector->classes;                                                \
            c_type greatest = own[0];                                                                                  \
            for (int32_t label = 1; label < detector->labels; label++) {                                               \
                greatest = own[label] > greatest || greatest != greatest ? own[label] : greatest;                      \
            }                                                                                                          \
            best[i] = mlf_real_##type(greatest, affine);                                                               \
        }                                                                                                              \
        mlf_clear_detections(0, detector->detections * detector->per_anchor, boxes, classes, scores);                  \
        int32_t count = mlf_candidates(detector, best, candidates);                                                    \
        int32_t detections = 0;                                                                                        \
        while (count > 0 && detections < detector->detections) {                                                       \
            const int32_t box = mlf_best_candidate(best, candidates, count);                                           \
            const c_type *const own = labelled + box * detector->classes;                                              \
            int32_t last = -1;                                                                                         \
            for (int32_t row = 0; row < detector->per_anchor && row < detector->labels; row++) {                       \
                int32_t next = -1;                                                                                     \
                for (int32_t label = 0; label < detector->labels; label++) {                                           \
                    const int later = last < 0 || own[label] < own[last] || (own[label] == own[last] && label > last); \
                    if (later && own[label] == own[label] && (next < 0 || own[label] > own[next])) {                   \
                        next = label;                                                                                  \
                    }                                                                                                  \
                }                                                                                                      \
                if (next < 0) {                                                                                        \
                    break;                                                                                             \
                }                                                                                                      \
                const int32_t to = detections * detector->per_anchor + row;                                            \
                memcpy(boxes + 4 * to, decoded + 4 * box, 4 * sizeof *boxes);                                          \
                classes[to] = (float)next;                                                                             \
                scores[to] = mlf_real_##type(own[next], affine);                                                       \
                last = next;                                                                                           \
            }                                                                                                          \
            detections++;                                                                                              \
            count = mlf_suppress(decoded, box, detector->overlap, candidates, count);                                  \
        }                                                                                                              \
        *found = (float)detections;                                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    MLF_KERNEL void mlf_detect_classes_##type(const struct mlf_detector *detector, const float *decoded,               \
                                              const c_type *input, struct mlf_affine affine, float *best,              \
                                              int32_t *candidates, float *boxes, float *classes, float *scores,        \
                                              float *found)                                                            \
    {                                                                                                                  \
        const c_type *const labelled = input + detector->classes - detector->labels;                                   \
        int32_t rows = 0;                                                                                              \
        for (int32_t label = 0; label < detector->labels; label++) {                                                   \
            for (int32_t i = 0; i < detector->boxes; i++) {                                                            \
                best[i] = mlf_real_##type(labelled[i * detector->classes + label], affine);                            \
            }                                                                                                          \
            int32_t count = mlf_candidates(detector, best, candidates);                                                \
            for (int32_t chosen = 0; count > 0 && chosen < detector->per_class; chosen++) {                            \
                const int32_t box = mlf_best_candidate(best, candidates, count);                                       \
                int32_t row = rows;                                                                                    \
                while (row > 0 && best[box] > scores[row - 1]) {                                                       \
                    row--;                                                                                             \
                }                                                                                                      \
                if (row == detector->detections) {                                                                     \
                    break; /* the others are not better */                                                             \
                }                                                                                                      \
                rows += rows < detector->detections ? 1 : 0;                                                           \
                for (int32_t to = rows - 1; to > row; to--) {                                                          \
                    memcpy(boxes + 4 * to, boxes + 4 * (to - 1), 4 * sizeof *boxes);                                   \
                    classes[to] = classes[to - 1];                                                                     \
                    scores[to] = scores[to - 1];                                                                       \
                }                                                                                                      \
                memcpy(boxes + 4 * row, decoded + 4 * box, 4 * sizeof *boxes);                                         \
                classes[row] = (float)label;                                                                           \
                scores[row] = best[box];                                                                               \
                count = mlf_suppress(decoded, box, detector->overlap, candidates, count);                              \
            }                                                                                                          \
        }                                                                                                              \
        mlf_clear_detections(rows, detector->detections * detector->per_anchor, boxes, classes, scores);               \
        *found = (float)rows;                                                                                          \
    }

MLF_DETECT(float, float)
MLF_DETECT(int8, int8_t)

#endif /* MLF_NON_MAX_SUPPRESSION_H_ */
