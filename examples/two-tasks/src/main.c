/*
 * Two tasks run one network: each calls mlf_wine_run() with its own workspace, and a tick switches between them in the
 * middle of the network, including the floating-point registers. The exit status is 0 if every answer equals that of an
 * uninterrupted run bit for bit.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tasks.h"
#include "tvmgen_wine.h"
#include "wine_samples.h"

_Static_assert(MLF_WINE_FEATURES_ELEMENTS == WINE_FEATURES, "the wine network reads another number of features");

#define TICK 25000u            /* cycles: a millisecond at the 25 MHz of the boards */
#define INTERRUPTIONS 100u     /* of each task in the middle of the network */
#define MOST_INFERENCES 500000 /* give up after these: there are no interruptions */
#define STACK_SIZE 4096

struct answer {
    float probabilities[MLF_WINE_PROBABILITIES_ELEMENTS];
};

struct worker {
    _Alignas(MLF_WINE_WORKSPACE_ALIGNMENT) uint8_t workspace[TVMGEN_WINE_WORKSPACE_SIZE];
    _Alignas(8) uint8_t stack[STACK_SIZE];
    struct task task;
    unsigned start; /* its first sample; the tasks never process the same one */
    unsigned inferences;
    volatile unsigned interrupted; /* inferences during which the other task ran */
    volatile float sum;
    unsigned wrong;
};

static struct worker workers[2] = {{.start = 0}, {.start = WINE_SAMPLES / 2}};
static struct answer expected[WINE_SAMPLES];

/* It writes only to the caller's memory, so any number of tasks may call it at the same time. */
static int classify(unsigned sample, struct answer *answer, void *workspace)
{
    float features[MLF_WINE_FEATURES_ELEMENTS];
    const struct tvmgen_wine_inputs inputs = {.features = features};
    const struct tvmgen_wine_outputs outputs = {.probabilities = answer->probabilities};

    memcpy(features, wine_samples[sample].features, sizeof features);
    return mlf_wine_run(&inputs, &outputs, workspace);
}

/* Both tasks work until both were interrupted often enough: an idle task would not interrupt the other. */
static int enough(void)
{
    return workers[0].interrupted >= INTERRUPTIONS && workers[1].interrupted >= INTERRUPTIONS;
}

static void work(void *argument)
{
    struct worker *worker = argument;
    unsigned sample = worker->start;
    struct answer answer;
    float sum = 0.0f; /* equals worker->sum, in a callee-saved register, which a task switch must preserve */

    for (; !enough() && worker->inferences < MOST_INFERENCES; sample = (sample + 1) % WINE_SAMPLES) {
        const unsigned turns = worker->task.turns;
        const int status = classify(sample, &answer, worker->workspace);

        worker->interrupted = worker->interrupted + (worker->task.turns != turns);
        worker->wrong += status != 0 || memcmp(&answer, &expected[sample], sizeof answer) != 0;
        sum += answer.probabilities[0];
        worker->sum += answer.probabilities[0];
        worker->wrong += sum != worker->sum;
        ++worker->inferences;
    }
}

static unsigned best(const struct answer *answer)
{
    unsigned class = 0;
    for (unsigned i = 1; i < MLF_WINE_PROBABILITIES_ELEMENTS; ++i) {
        class = answer->probabilities[i] > answer->probabilities[class] ? i : class;
    }
    return class;
}

int main(void)
{
    unsigned same = 0;
    int passed;

    for (unsigned i = 0; i < WINE_SAMPLES; ++i) {
        passed = classify(i, &expected[i], workers[0].workspace) == 0;
        same += passed && best(&expected[i]) == wine_samples[i].host;
    }
    printf("alone: %u of %u answers as on the host\n", same, WINE_SAMPLES);
    passed = same == WINE_SAMPLES;

    tasks_start(TICK);
    for (unsigned i = 0; i < 2; ++i) {
        task_start(&workers[i].task, work, &workers[i], workers[i].stack, sizeof workers[i].stack);
    }
    while (!workers[0].task.over || !workers[1].task.over) {
        task_yield();
    }

    /* stdio is not reentrant here, so only main() prints. */
    for (unsigned i = 0; i < 2; ++i) {
        printf("task %u: interrupted in the network: %s, wrong answers: %u\n", i + 1,
               workers[i].interrupted >= INTERRUPTIONS ? "often" : "hardly", workers[i].wrong);
        passed = passed && workers[i].wrong == 0 && workers[i].interrupted >= INTERRUPTIONS;
    }
    printf("Test_result: %s\n", passed ? "PASS" : "FAIL");
    return passed ? 0 : 1;
}
