/*
 * Recognises words in samples: a front end of signal operators computes the features of 20 ms of audio, and a streaming
 * network computes from them the probabilities that one of four words has just ended. Both networks keep what they need
 * of earlier samples. The exit status is 0 if the words are those spoken, and all probabilities are those of TensorFlow
 * Lite Micro on the computer that trained the network, also after a reset.
 */
#include <stdint.h>
#include <stdio.h>

#include "stream.h"
#include "tvmgen_frontend.h"
#include "tvmgen_words.h"

_Static_assert(MLF_FRONTEND_SAMPLES_ELEMENTS == STREAM_HOP, "the front end reads hops of another size");
_Static_assert(MLF_WORDS_PROBABILITIES_ELEMENTS == STREAM_CLASSES, "the network has other words");
_Static_assert(MLF_FRONTEND_FEATURES_ELEMENTS == MLF_WORDS_FEATURES_ELEMENTS &&
                   MLF_FRONTEND_FEATURES_ZERO_POINT == MLF_WORDS_FEATURES_ZERO_POINT &&
                   (int)(MLF_FRONTEND_FEATURES_SCALE / MLF_WORDS_FEATURES_SCALE * 1e6f) == 1000000,
               "the network reads other features than the front end computes");

#define HOPS_PER_SECOND 50u
#define AVERAGED 4u /* hops */
#define LEAST 717u  /* of AVERAGED * 256, 70 % */
#define PAUSE 25u   /* hops after a word, before the next one counts */

struct recognizer {
    uint8_t last[AVERAGED][STREAM_CLASSES]; /* probabilities in 256ths, a ring */
    unsigned hops;
    unsigned rest; /* hops of the pause that are left */
    unsigned sum;  /* probabilities of the word that was recognised */
};

static int16_t from_mu_law(uint8_t coded)
{
    const unsigned bits = ~(unsigned)coded & 0xffu;
    const int magnitude = (int)((((bits & 15u) << 3) + 132u) << ((bits >> 4) & 7u)) - 132;
    return (int16_t)((bits & 0x80u) != 0u ? -magnitude : magnitude);
}

/* Returns the word that has just been recognised, or 0. */
static unsigned recognize(struct recognizer *self, const int8_t *probabilities)
{
    uint8_t *now = self->last[self->hops++ % AVERAGED];
    unsigned best = 0;

    self->sum = 0;
    self->rest -= self->rest > 0u;
    for (unsigned i = 0; i < STREAM_CLASSES; ++i) {
        unsigned sum = 0;
        now[i] = (uint8_t)(probabilities[i] - MLF_WORDS_PROBABILITIES_ZERO_POINT);
        for (unsigned hop = 0; hop < AVERAGED; ++hop) {
            sum += self->last[hop][i];
        }
        if (sum > self->sum) {
            self->sum = sum;
            best = i;
        }
    }
    if (best == 0 || self->rest > 0u || self->sum < LEAST) {
        return 0;
    }
    self->rest = PAUSE;
    return best;
}

struct result {
    unsigned same;  /* hops with the host's probabilities */
    unsigned words; /* words that were recognised */
    unsigned right; /* and of these, those that were spoken */
};

/* Hears the stream from its beginning. */
static struct result listen(void)
{
    static int16_t samples[STREAM_HOP];
    static int8_t features[MLF_WORDS_FEATURES_ELEMENTS];
    static int8_t probabilities[STREAM_CLASSES];
    struct tvmgen_frontend_inputs from_microphone = {.samples = samples};
    struct tvmgen_frontend_outputs to_words = {.features = features};
    struct tvmgen_words_inputs from_frontend = {.features = features};
    struct tvmgen_words_outputs outputs = {.probabilities = probabilities};
    struct recognizer recognizer = {.hops = 0};
    struct result result = {0, 0, 0};
    unsigned next = 0; /* the word in the stream that is to be recognised next */

    tvmgen_frontend_reset();
    tvmgen_words_reset();
    for (unsigned hop = 0; hop < STREAM_HOPS; ++hop) {
        for (unsigned i = 0; i < STREAM_HOP; ++i) {
            samples[i] = from_mu_law(stream_audio[hop * STREAM_HOP + i]);
        }
        if (tvmgen_frontend_run(&from_microphone, &to_words) != 0 || tvmgen_words_run(&from_frontend, &outputs) != 0) {
            return result;
        }

        unsigned differ = 0;
        for (unsigned i = 0; i < STREAM_CLASSES; ++i) {
            differ |= probabilities[i] != stream_host[hop][i];
        }
        result.same += differ == 0u;

        const unsigned word = recognize(&recognizer, probabilities);
        if (word != 0) {
            const unsigned centiseconds = (hop + 1u) * 100u / HOPS_PER_SECOND;
            printf("%2u.%02u s  %-5s %3u %%\n", centiseconds / 100u, centiseconds % 100u, stream_names[word],
                   recognizer.sum * 100u / (AVERAGED * 256u));
            while (next < STREAM_WORDS && stream_words[next].label == 0) {
                ++next;
            }
            result.right += next < STREAM_WORDS && stream_words[next].label == word;
            ++result.words;
            ++next;
        }
    }
    return result;
}

static int passed(struct result result, unsigned known)
{
    return result.same == STREAM_HOPS && result.words == known && result.right == known;
}

int main(void)
{
    unsigned known = 0;

    printf("spoken:");
    for (unsigned i = 0; i < STREAM_WORDS; ++i) {
        known += stream_words[i].label != 0;
        printf(" %s", stream_words[i].name);
    }
    printf("\nheard:\n");
    const struct result first = listen();
    printf("and after a reset:\n");
    const struct result second = listen();
    printf("%u and %u of %u hops as on the host\n", first.same, second.same, STREAM_HOPS);

    const int right = passed(first, known) && passed(second, known);
    printf("Test_result: %s\n", right ? "PASS" : "FAIL");
    return right ? 0 : 1;
}
