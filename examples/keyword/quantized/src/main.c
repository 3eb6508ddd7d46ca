/*
 * Joins a front end and a network that the build quantises. Its ranges come from calibration, so that the scales of its
 * input and of the features differ: each feature is converted on its way into the window. The exit status is 0 if the
 * words that are heard are those spoken.
 */
#include <stdio.h>
#include <string.h>

#include "../../src/stream.h"
#include "tvmgen_frontend.h"
#include "tvmgen_words.h"

#define FEATURES MLF_FRONTEND_FEATURES_ELEMENTS
#define HOPS (MLF_WORDS_FEATURES_ELEMENTS / FEATURES)
#define LEAST 0.7f
#define RUNS 4u   /* in which a word is the most probable one */
#define PAUSE 25u /* hops after a word, before the next one counts */

_Static_assert(MLF_FRONTEND_SAMPLES_ELEMENTS == STREAM_HOP, "the front end reads hops of another size");
_Static_assert(HOPS * FEATURES == MLF_WORDS_FEATURES_ELEMENTS, "the network does not read whole hops");
_Static_assert(MLF_WORDS_PROBABILITIES_ELEMENTS == STREAM_CLASSES, "the network has other words");

static int8_t window[HOPS][FEATURES]; /* the oldest hop first, as the network reads it */
static int8_t converted[256];         /* for each feature, the same number with the scale of the network */

static void convert(void)
{
    for (int i = INT8_MIN; i <= INT8_MAX; ++i) {
        converted[(uint8_t)i] = mlf_words_quantize_features(mlf_frontend_dequantize_features((int8_t)i));
    }
}

static int16_t from_mu_law(uint8_t coded)
{
    const unsigned bits = ~(unsigned)coded & 0xffu;
    const int magnitude = (int)((((bits & 15u) << 3) + 132u) << ((bits >> 4) & 7u)) - 132;
    return (int16_t)((bits & 0x80u) != 0u ? -magnitude : magnitude);
}

/* Hears one hop; returns the most probable word, or 0. */
static unsigned hear(unsigned hop)
{
    static int16_t samples[STREAM_HOP];
    static int8_t features[FEATURES], probabilities[STREAM_CLASSES];
    struct tvmgen_frontend_inputs from_microphone = {.samples = samples};
    struct tvmgen_frontend_outputs to_window = {.features = features};
    struct tvmgen_words_inputs from_window = {.features = window};
    struct tvmgen_words_outputs outputs = {.probabilities = probabilities};
    unsigned best = 0;

    for (unsigned i = 0; i < STREAM_HOP; ++i) {
        samples[i] = from_mu_law(stream_audio[hop * STREAM_HOP + i]);
    }
    if (tvmgen_frontend_run(&from_microphone, &to_window) != 0) {
        return 0;
    }
    memmove(window[0], window[1], sizeof window - sizeof window[0]);
    for (unsigned i = 0; i < FEATURES; ++i) {
        window[HOPS - 1][i] = converted[(uint8_t)features[i]];
    }
    if (hop + 1u < HOPS || tvmgen_words_run(&from_window, &outputs) != 0) {
        return 0;
    }
    for (unsigned i = 1; i < STREAM_CLASSES; ++i) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    return mlf_words_dequantize_probabilities(probabilities[best]) >= LEAST ? best : 0;
}

int main(void)
{
    unsigned last = 0, runs = 0, rest = 0, next = 0, wrong = 0;

    convert();
    for (unsigned hop = 0; hop < STREAM_HOPS; ++hop) {
        const unsigned word = hear(hop);
        runs = word == last ? runs + 1u : 1u;
        last = word;
        rest -= rest > 0u;
        if (word != 0 && runs >= RUNS && rest == 0) {
            rest = PAUSE;
            printf("%2u.%02u s  %s\n", (hop + 1u) / 50u, (hop + 1u) % 50u * 2u, stream_names[word]);
            while (next < STREAM_WORDS && stream_words[next].label == 0) {
                ++next;
            }
            wrong += next >= STREAM_WORDS || stream_words[next++].label != word;
        }
    }
    while (next < STREAM_WORDS) {
        wrong += stream_words[next++].label != 0;
    }
    printf("Test_result: %s\n", wrong == 0 ? "PASS" : "FAIL");
    return wrong == 0 ? 0 : 1;
}
