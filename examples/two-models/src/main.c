/*
 * Two networks in one firmware, which share one arena: one classifies flowers by their lengths (int8), the other wines
 * by thirteen measurements (float32). The exit status is 0 if every answer equals that of TensorFlow Lite Micro on the
 * training computer.
 */
#include <stdint.h>
#include <stdio.h>

#include "iris_samples.h"
#include "tvmgen_iris.h"
#include "tvmgen_wine.h"
#include "wine_samples.h"

_Static_assert(MLF_IRIS_FEATURES_ELEMENTS == IRIS_FEATURES, "the iris network reads another number of features");
_Static_assert(MLF_WINE_FEATURES_ELEMENTS == WINE_FEATURES, "the wine network reads another number of features");

#define FAILED UINT8_MAX /* no class */
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Only one network runs at a time, so the larger workspace is sufficient for both. */
static _Alignas(LARGER(MLF_IRIS_WORKSPACE_ALIGNMENT, MLF_WINE_WORKSPACE_ALIGNMENT))
    uint8_t arena[LARGER(TVMGEN_IRIS_WORKSPACE_SIZE, TVMGEN_WINE_WORKSPACE_SIZE)];

struct score {
    unsigned samples;
    unsigned right; /* answers that equal the true class */
    unsigned same;  /* answers that equal the host's */
};

static void count(struct score *score, unsigned answer, unsigned label, unsigned host)
{
    ++score->samples;
    score->right += answer == label;
    score->same += answer == host;
}

static unsigned classify_iris(const float *centimetres)
{
    int8_t features[MLF_IRIS_FEATURES_ELEMENTS];
    int8_t probabilities[MLF_IRIS_PROBABILITIES_ELEMENTS];
    const struct tvmgen_iris_inputs inputs = {.features = features};
    const struct tvmgen_iris_outputs outputs = {.probabilities = probabilities};
    unsigned best = 0;

    for (unsigned i = 0; i < IRIS_FEATURES; ++i) {
        features[i] = mlf_iris_quantize_features(centimetres[i]);
    }
    if (mlf_iris_run(&inputs, &outputs, arena) != 0) {
        return FAILED;
    }
    for (unsigned i = 1; i < MLF_IRIS_PROBABILITIES_ELEMENTS; ++i) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    return best;
}

static unsigned classify_wine(const float *measurements)
{
    float features[MLF_WINE_FEATURES_ELEMENTS];
    float probabilities[MLF_WINE_PROBABILITIES_ELEMENTS];
    const struct tvmgen_wine_inputs inputs = {.features = features};
    const struct tvmgen_wine_outputs outputs = {.probabilities = probabilities};
    unsigned best = 0;

    for (unsigned i = 0; i < WINE_FEATURES; ++i) {
        features[i] = measurements[i];
    }
    if (mlf_wine_run(&inputs, &outputs, arena) != 0) {
        return FAILED;
    }
    for (unsigned i = 1; i < MLF_WINE_PROBABILITIES_ELEMENTS; ++i) {
        best = probabilities[i] > probabilities[best] ? i : best;
    }
    return best;
}

static void print_score(const char *name, struct score score)
{
    printf("%s: %u of %u right, %u answers as on the host\n", name, score.right, score.samples, score.same);
}

int main(void)
{
    struct score iris = {0, 0, 0};
    struct score wine = {0, 0, 0};

    for (unsigned i = 0; i < LARGER(IRIS_SAMPLES, WINE_SAMPLES); ++i) {
        if (i < IRIS_SAMPLES) {
            const struct iris_sample *sample = &iris_samples[i];
            count(&iris, classify_iris(sample->features), sample->label, sample->host);
        }
        if (i < WINE_SAMPLES) {
            const struct wine_sample *sample = &wine_samples[i];
            count(&wine, classify_wine(sample->features), sample->label, sample->host);
        }
    }

    const int passed = iris.same == IRIS_SAMPLES && wine.same == WINE_SAMPLES;
    print_score("iris", iris);
    print_score("wine", wine);
    printf("arena of both: %u bytes\n", (unsigned)sizeof arena);
    printf("Test_result: %s\n", passed ? "PASS" : "FAIL");
    return passed ? 0 : 1;
}
