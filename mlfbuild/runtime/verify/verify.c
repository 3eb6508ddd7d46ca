/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Test firmware for one module: runs every case of a file and records the results for a check.
 *
 *   verify INPUTS OUTPUTS
 *
 * INPUTS contains the inputs of each case in call order, without gaps. For each run of a case, a `struct record` and
 * the outputs are appended to OUTPUTS. Each access to a file stops a device for its host, so a case makes few of them:
 * it reads each input once, and small results of its runs are written together. Therefore the image does not depend on the cases, and if a run stops, OUTPUTS
 * contains the previous cases. A module that is checked runs each case twice; otherwise once. A module with a state
 * keeps it from case to case: the first runs use the module's own state, the second runs a state of this file. The same
 * file is compiled for a board and for this machine.
 *
 * verify_module.h is generated for the module:
 *   MODULE_HEADER                the header of its C interface
 *   MODULE_INPUTS, _OUTPUTS      the structs of pointers that its functions take
 *   MODULE_INPUT_SIZES, _OUTPUT_SIZES  bytes, in the order of the structs' members
 *   MODULE_WORKSPACE_SIZES       bytes of the workspaces that its caller provides; 0 for none
 *   MODULE_STATE_SIZE            bytes of the state that its caller provides
 *   MODULE_MEMORY(size)          the sum of `size(bytes)` over all of these
 *   MODULE_RUNS                  runs of each case: 2 to check the module, 1 to use it
 *   MODULE_RUN(inputs, outputs, pools)  call it with its own workspace, or with pools
 *   MODULE_RUN_IN(inputs, outputs, workspace, state)  the second run: with a workspace of this file, if it takes one
 *   MODULE_RESET(state)          reset the state, if its caller provides one
 *   MODULE_POOLS, MODULE_POOL_MEMBERS(workspaces)  the struct of memory pools, and its initializer, if it takes them
 *   MODULE_STATIC_POOLS          a function that returns pools for the first run, if the module is built with one
 *   MODULE_CONSTANTS             definitions of the pools of constants, if it has any
 *   MODULE_MAP_INPUTS(pools), MODULE_MAP_OUTPUTS(pools)  the addresses of inputs and outputs, if they are in the pools
 *   MODULE_SUBJECT               everything that a check must know about the module, as JSON in the image
 *   MODULE_OPERATORS             if runs are timed on a device; mlf_profile.h describes this macro
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "verify_module.h"
#include MODULE_HEADER
#include "verify_files.h"
#include "verify_memory.h"
#ifdef MODULE_OPERATORS
#include "mlf_profile.h"
#endif

#define EXIT_FILES 2 /* a file cannot be read or written */

static const uint32_t input_sizes[] = {MODULE_INPUT_SIZES};
static const uint32_t output_sizes[] = {MODULE_OUTPUT_SIZES};
static const uint32_t workspace_sizes[] = {MODULE_WORKSPACE_SIZES};

/* The check finds it by its name in the image's symbol table. */
extern const char mlf_verify_subject[];
const char mlf_verify_subject[] = MODULE_SUBJECT;

#define INPUTS (sizeof input_sizes / sizeof input_sizes[0])
#define OUTPUTS (sizeof output_sizes / sizeof output_sizes[0])
#define WORKSPACES (sizeof workspace_sizes / sizeof workspace_sizes[0])
#ifdef MODULE_MAP_INPUTS
enum { BUFFERS_OF_OURS = 0 }; /* inputs and outputs are in the pools, and share their bytes with other tensors */
#else
enum { BUFFERS_OF_OURS = 1 };
#endif

/* The damage that a run caused; `index` of the record counts inputs, outputs or workspaces. */
enum damage { NOTHING, INPUT_CHANGED, BESIDE_INPUT, BESIDE_OUTPUT, BESIDE_WORKSPACE, BESIDE_STATE };

struct record {
    int32_t status; /* result of the run function */
    uint32_t damage;
    uint32_t index;
    uint32_t workspace_used; /* bytes from the start to the last one written, of all workspaces in this file */
    uint32_t stack_used;     /* bytes; 0 if it is not measured */
};

/* ---- Memory -------------------------------------------------------------------------------------------------- */

enum { STATE_PAINT = 0x3C };

static uint8_t memory[MODULE_MEMORY(GUARDED)] __attribute__((aligned(ALIGNMENT)));
static struct buffer inputs[INPUTS], outputs[OUTPUTS], workspaces[WORKSPACES], state;

static void lay_out_memory(void)
{
    uint8_t *free_memory = memory;
    for (uint32_t i = 0; BUFFERS_OF_OURS && i < INPUTS; i++) {
        inputs[i] = take(&free_memory, input_sizes[i]);
    }
    for (uint32_t i = 0; BUFFERS_OF_OURS && i < OUTPUTS; i++) {
        outputs[i] = take(&free_memory, output_sizes[i]);
    }
    for (uint32_t i = 0; i < WORKSPACES; i++) {
        workspaces[i] = take(&free_memory, workspace_sizes[i]);
    }
    state = take(&free_memory, MODULE_STATE_SIZE);
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

/* Of each input after it was read. A hash of its bytes shows whether a run changed it, without reading it again. */
static uint32_t input_hashes[INPUTS];

/* FNV-1a: each step is reversible, so that a change of one byte always changes the hash. */
static uint32_t hash_of(struct buffer buffer)
{
    uint32_t hash = 0x811C9DC5u;
    for (uint32_t i = 0; i < buffer.size; i++) {
        hash = (hash ^ buffer.bytes[i]) * 0x01000193u;
    }
    return hash;
}

static int read_inputs(int file)
{
    int ok = 1;
    for (uint32_t i = 0; ok && i < INPUTS; i++) {
        ok = read_all(file, inputs[i].bytes, inputs[i].size);
        input_hashes[i] = BUFFERS_OF_OURS ? hash_of(inputs[i]) : 0;
    }
    return ok;
}

/* The first input that the last run changed, or INPUTS. */
static uint32_t changed_input(void)
{
    uint32_t i = 0;
    while (i < INPUTS && hash_of(inputs[i]) == input_hashes[i]) {
        i++;
    }
    return i;
}

static uint32_t size_of_inputs(void)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < INPUTS; i++) {
        size += input_sizes[i];
    }
    return size;
}

/* ---- Running ------------------------------------------------------------------------------------------------- */

static struct output output;
static MODULE_INPUTS input_pointers;
static MODULE_OUTPUTS output_pointers;

/* The structs contain only pointers in call order; otherwise the negative size of an array stops the compiler. */
typedef char inputs_are_pointers[sizeof(MODULE_INPUTS) == INPUTS * sizeof(void *) ? 1 : -1];
typedef char outputs_are_pointers[sizeof(MODULE_OUTPUTS) == OUTPUTS * sizeof(void *) ? 1 : -1];

#ifdef MODULE_POOLS
static MODULE_POOLS pools;
#ifdef MODULE_CONSTANTS
MODULE_CONSTANTS
#endif

#if defined(MODULE_STATIC_POOLS) && defined(__ELF__)
MODULE_POOLS MODULE_STATIC_POOLS(void) __attribute__((weak));
#define HAS_STATIC_POOLS (MODULE_STATIC_POOLS != 0)
#else
#define HAS_STATIC_POOLS 0
#undef MODULE_STATIC_POOLS
#define MODULE_STATIC_POOLS() pools
#endif

static void set_pools(int run)
{
    const MODULE_POOLS ours = MODULE_POOL_MEMBERS(workspaces);
    pools = run == 0 && HAS_STATIC_POOLS ? MODULE_STATIC_POOLS() : ours;
}
#else
static void set_pools(int run)
{
    (void)run;
}
#endif

#ifdef MODULE_MAP_INPUTS
/* The module defines the addresses of its inputs and outputs. */
static void set_pointers(void)
{
    void *pointers[INPUTS > OUTPUTS ? INPUTS : OUTPUTS];
    input_pointers = MODULE_MAP_INPUTS(&pools);
    memcpy(pointers, &input_pointers, sizeof input_pointers);
    for (uint32_t i = 0; i < INPUTS; i++) {
        inputs[i] = (struct buffer){pointers[i], input_sizes[i]};
    }
    output_pointers = MODULE_MAP_OUTPUTS(&pools);
    memcpy(pointers, &output_pointers, sizeof output_pointers);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        outputs[i] = (struct buffer){pointers[i], output_sizes[i]};
    }
}
#else
static void set_pointers(void)
{
    void *pointers[INPUTS > OUTPUTS ? INPUTS : OUTPUTS];
    for (uint32_t i = 0; i < INPUTS; i++) {
        pointers[i] = inputs[i].bytes;
    }
    memcpy(&input_pointers, pointers, sizeof input_pointers);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        pointers[i] = outputs[i].bytes;
    }
    memcpy(&output_pointers, pointers, sizeof output_pointers);
}
#endif

#ifdef MODULE_OPERATORS
static int32_t call(int run)
{
    static int with_hook;
    int32_t status;
    (void)run;
    cycles.operators = with_hook ? MODULE_OPERATORS : 0;
    cycles.began = mlf_cycles_now();
    __asm__ volatile("" ::: "memory");
#ifdef MODULE_RUN_HOOKED
    if (with_hook) {
        status = MODULE_RUN_HOOKED(&input_pointers, &output_pointers, &pools, any_hook);
    } else
#endif
    {
        status = MODULE_RUN(&input_pointers, &output_pointers, &pools);
    }
    __asm__ volatile("" ::: "memory");
    cycles.ended = mlf_cycles_now();
    with_hook = !with_hook;
    return status;
}
#else
static int32_t call(int run)
{
#ifdef MODULE_RUN_IN
    if (run > 0) {
        return MODULE_RUN_IN(&input_pointers, &output_pointers, workspaces[0].bytes, state.bytes);
    }
#endif
    (void)run;
    return MODULE_RUN(&input_pointers, &output_pointers, &pools);
}
#endif

#ifdef MEASURE_STACK
extern uint32_t __stack_limit[];

/* Paint the free stack, call, and find the deepest word without paint. No other code may use the stack meanwhile. */
__attribute__((noinline)) static void measured_call(struct record *record, int run, uint32_t paint)
{
    const volatile uint32_t *deepest = __stack_limit;
    volatile uint32_t *top;
#ifdef __riscv
    __asm__ volatile("mv %0, sp" : "=r"(top));
#else
    __asm__ volatile("mov %0, sp" : "=r"(top));
#endif
    for (volatile uint32_t *at = __stack_limit; at < top; at++) {
        *at = paint;
    }
    record->status = call(run);
    while (deepest < top && *deepest == paint) {
        deepest++;
    }
    record->stack_used = (uint32_t)(top - deepest) * (uint32_t)sizeof *top;
}
#else
static void measured_call(struct record *record, int run, uint32_t paint)
{
    (void)paint;
    record->status = call(run);
}
#endif

static void note(struct record *record, enum damage damage, uint32_t index)
{
    if (record->damage == NOTHING) {
        record->damage = damage;
        record->index = index;
    }
}

static void look_at_tensors(struct record *record, uint8_t paint)
{
    const uint32_t changed = changed_input();
    if (changed < INPUTS) {
        note(record, INPUT_CHANGED, changed);
    }
    for (uint32_t i = 0; i < INPUTS; i++) {
        if (!guards_hold(inputs[i], paint)) {
            note(record, BESIDE_INPUT, i);
        }
    }
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        if (!guards_hold(outputs[i], paint)) {
            note(record, BESIDE_OUTPUT, i);
        }
    }
}

static void look_for_damage(struct record *record, uint8_t paint)
{
    if (BUFFERS_OF_OURS) {
        look_at_tensors(record, paint);
    }
    for (uint32_t i = 0; i < WORKSPACES; i++) {
        if (!guards_hold(workspaces[i], paint)) {
            note(record, BESIDE_WORKSPACE, i);
        }
    }
    if (!guards_hold(state, STATE_PAINT)) {
        note(record, BESIDE_STATE, 0);
    }
}

/* Provide the inputs of the case at `position`. The file is there already, except to read it again for a second run. */
static int provide_inputs(int file, uint32_t position, int run, uint8_t paint)
{
    if (run > 0 && BUFFERS_OF_OURS && changed_input() == INPUTS) {
        for (uint32_t i = 0; i < INPUTS; i++) {
            paint_guards(inputs[i], paint);
        }
        return 1;
    }
    for (uint32_t i = 0; BUFFERS_OF_OURS && i < INPUTS; i++) {
        prepare(inputs[i], paint);
    }
    return (run == 0 || lseek(file, (off_t)position, SEEK_SET) == (off_t)position) && read_inputs(file);
}

/* Run the case at `position`, the first or the second time, and record it; returns 0 if a file fails. */
static int run_once(int in, struct output *out, uint32_t position, int run, uint8_t paint)
{
    struct record record = {0, NOTHING, 0, 0, 0};
    for (uint32_t i = 0; i < WORKSPACES; i++) {
        prepare(workspaces[i], paint);
    }
    for (uint32_t i = 0; BUFFERS_OF_OURS && i < OUTPUTS; i++) {
        prepare(outputs[i], paint);
    }
    if (!provide_inputs(in, position, run, paint)) {
        return 0;
    }
    set_pools(run);
    measured_call(&record, run, paint * 0x01010101u);
    for (uint32_t i = 0; i < WORKSPACES; i++) {
        record.workspace_used += used(workspaces[i], paint);
    }
    look_for_damage(&record, paint);
    int ok = put(out, &record, sizeof record);
    for (uint32_t i = 0; ok && i < OUTPUTS; i++) {
        ok = put(out, outputs[i].bytes, outputs[i].size);
    }
#ifdef MODULE_OPERATORS
    ok = ok && put(out, &cycles, sizeof cycles);
#endif
    return ok;
}

int main(int argc, char **argv)
{
    (void)*(const volatile char *)mlf_verify_subject; /* otherwise the linker drops it */
    const int in = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    output.file = argc == 3 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    if (in < 0 || output.file < 0) {
        return EXIT_FILES;
    }
    const uint32_t end = (uint32_t)lseek(in, 0, SEEK_END), step = size_of_inputs();
    if (lseek(in, 0, SEEK_SET) != 0) {
        return EXIT_FILES;
    }
#ifdef MODULE_OPERATORS
    const enum mlf_cycles_refusal refusal = mlf_cycles_start();
    if (refusal != MLF_CYCLES_COUNT) {
        return EXIT_COUNTER + (int)refusal;
    }
    measure_overhead();
#endif
    uint8_t paint = 0xA5; /* changes from run to run, because a write of the paint's own value would not be detected */
    lay_out_memory();
    set_pools(0);
    set_pointers();
    prepare(state, STATE_PAINT);
#ifdef MODULE_RESET
    (void)MODULE_RESET(state.bytes);
#endif
    for (uint32_t position = 0; position + step <= end; position += step) {
        for (int run = 0; run < MODULE_RUNS; run++) {
            if (!run_once(in, &output, position, run, (uint8_t)(run > 0 ? ~paint : paint))) {
                return EXIT_FILES;
            }
        }
        if (!flush(&output)) {
            return EXIT_FILES;
        }
        paint = (uint8_t)(paint * 5 + 3);
    }
    return close(in) == 0 && close(output.file) == 0 ? 0 : EXIT_FILES;
}
