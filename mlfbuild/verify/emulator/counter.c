/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A QEMU plugin that counts the instructions of one run of a network, by call of its operator functions.
 *
 *   -plugin counter.so,table=FILE,out=FILE[,timing=FILE][,blocks=FILE]
 *   -plugin counter.so,marks=FILE,runs=N,out=FILE[,timing=FILE]                 see `marks.h`
 *
 * Each line of the table has the first and the last address of a function and its number: 0 for functions that call
 * the operators, positive numbers for functions of operators, -1 for the caller of the network. A run begins in a
 * function with number 0 and ends in the caller. Functions that an operator's function calls are counted for it. The
 * output has a line for each call, in order: the number of the function and its instructions; and a line with number 0
 * for the rest.
 *
 * With `timing`, each line also has the units of cycles of arithmetic, of loads and stores, of branches, of waiting for
 * memories, and of waiting for instructions among these. The file describes the costs of instructions and the memories
 * of a microcontroller:
 *
 *   core SCALE SPLIT_TARGET UNALIGNED OTHER_MEMORY BUS           SCALE units are one cycle; see `CoreTiming` in Python
 *   cache SIZE LINE SECTOR WAYS POLICY HIT MISS WRITE_BACK
 *   memory FIRST LAST WIDTH WAITS BURST WRITE_WAITS HIDDEN FETCH_WAITS PREFETCH FETCH_CACHE READ_CACHE NUMBER
 *   code ADDRESS SIZE UNITS TAKEN KIND OVERLAPS                  an instruction; in order of address
 *   preload ADDRESS DISTANCE                                     behind them: a load, and from its address to that of a PLD
 *
 * Memories of several ranges with the same number are one. Numbers are decimal, addresses hexadecimal. The units of a
 * block of instructions are added when it begins; whether its last instruction branched is known when the next block
 * begins. `memories.h` has the waits for instructions and data. If an instruction or an address is in no line, the output
 * has a line `unknown ADDRESS BLOCK`, with that of the block; registers are known between marks. `blocks` is written: a
 * line for each block that was executed, with its first address, the one after it, how often it was executed, and the
 * units as above.
 *
 * QEMU translates blocks of instructions, which run to their end unless a fault occurs. The few functions of its
 * interface (qemu-plugin.h, version 1) are declared here, because distributions ship no header.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memories.h"

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*executed)(unsigned int cpu, void *data);
typedef void (*accessed)(unsigned int cpu, uint32_t info, uint64_t address, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated callback);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed callback, int flags, void *data);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, void *), void *data);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, accessed callback, int flags, int rw,
                                             void *data);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
extern bool qemu_plugin_mem_is_store(uint32_t info);
extern unsigned int qemu_plugin_mem_size_shift(uint32_t info);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);

EXPORTED int qemu_plugin_version = 1;

enum { CALLER = -1, EXECUTOR = 0, INSIDE = -2 };

struct function {
    uint64_t first, last;
    int what;
};

enum kind { ARITHMETIC, MEMORY, BRANCH, WAITING, KINDS };

struct counter {
    uint64_t instructions;
    uint64_t registers; /* accesses to them, only between marks */
    uint64_t units[KINDS];
    uint64_t fetching; /* of the units of waiting, those for instructions */
};

struct call {
    int function;
    struct counter counter;
};

/* An instruction of the image, as `timing` describes it. */
struct code {
    uint64_t address;
    uint32_t size, units;
    int32_t taken; /* negative if it takes longer not to branch, by at most `units` */
    int kind, overlaps;
    int64_t preload; /* bytes from the address of this load to that of a PLD; 0 without one */
};

/* An access of a block's instructions to memory: a part of the code that must be there before `address` is executed. */
struct step {
    struct memory *memory;
    uint64_t address;
    uint32_t before; /* units of the instructions before it */
};

struct block {
    uint64_t instructions;
    int what;
    const struct part *part;   /* the function of an image with marks that it is in, and */
    const struct part *branch; /* the call or jump to another function that the block ends in */
    uint64_t first, behind;
    uint64_t units[KINDS]; /* of one execution */
    uint64_t total;
    int32_t taken;
    bool split; /* begins with an instruction of 32 bits that is not at a word boundary */
    uint64_t unknown;
    struct step *steps;
    size_t number_of_steps;
    struct counter spent; /* of all executions in the run */
    uint64_t executions;
    struct block *next;
};

struct instruction {
    const struct block *block;
    uint32_t before;
    bool overlaps;
    int64_t preload;
};

static struct function functions[4096];
static size_t number_of_functions;
static struct call calls[65536];
static size_t number_of_calls;
static struct counter rest;
static struct counter *count; /* the counter of the present function, or NULL outside of a run */
static int runs;
static const char *output, *blocks_output;

static bool timing;
static struct code *code;
static size_t number_of_codes, room_for_codes;
static uint64_t split_target, unaligned, other_memory, bus = 4;
static uint64_t unknown = NOTHING, unknown_in;
static struct block *blocks;

static struct block *present; /* the block that is executed, and */
static size_t step;           /* its next step, */
static uint64_t began;        /* the time of its begin, moved by the time that it waited */
static const struct instruction *accessing; /* the last instruction that accessed data, and */
static uint64_t accessed_word;              /* which word, in units of the bus, */
static uint64_t accesses;                   /* and how many words in this execution of it */
static const struct port *accessed_port;    /* the memory of the last access to data */

/* The number of the function that begins at `address`, INSIDE for blocks in the middle of functions. */
static int kind_of(uint64_t address)
{
    for (size_t i = 0; i < number_of_functions; i++) {
        const struct function *const f = &functions[i];
        if (address == f->first || (f->what <= EXECUTOR && address > f->first && address <= f->last)) {
            return f->what;
        }
    }
    return INSIDE;
}

static void spend(uint64_t units, enum kind kind)
{
    count->units[kind] += units;
    present->spent.units[kind] += units;
}

static void wait_for(uint64_t units)
{
    began += units;
    spend(units, WAITING);
}

/* Fetch the instructions of the present block up to one with `before` units before it. */
static void fetch_until(uint64_t before)
{
    for (; step < present->number_of_steps && present->steps[step].before <= before; step++) {
        const struct step *const s = &present->steps[step];
        const uint64_t units = fetch(s->memory, s->address, began + s->before);
        count->fetching += units;
        present->spent.fetching += units;
        wait_for(units);
    }
}

/* End the present block; the next one begins at `next`. */
static void leave(const struct block *next)
{
    fetch_until(UINT64_MAX);
    began += present->total;
    if (next->first != present->behind) {
        const uint64_t taken = (uint64_t)(int64_t)present->taken + (next->split ? split_target : 0); /* modulo 2^64 */
        spend(taken, BRANCH);
        began += taken;
    }
}

static void enter(struct block *block)
{
    present = block;
    step = 0;
    accessing = NULL;
    block->executions++;
    block->spent.instructions += block->instructions;
    for (int kind = 0; kind < KINDS; kind++) {
        count->units[kind] += block->units[kind];
    }
    if (block->unknown != NOTHING) {
        unknown = block->unknown;
        unknown_in = block->first;
    }
}

static void execute(unsigned int cpu, void *data)
{
    struct block *const block = data;
    (void)cpu;
    if (present != NULL) {
        leave(block);
        present = NULL;
    }
    if (block->what == CALLER) {
        runs += count != NULL;
        count = NULL;
    } else if (block->what == EXECUTOR && runs == 0) {
        count = &rest;
    } else if (block->what > EXECUTOR && count != NULL && number_of_calls < sizeof calls / sizeof *calls) {
        calls[number_of_calls].function = block->what;
        count = &calls[number_of_calls++].counter;
    }
    if (count != NULL) {
        count->instructions += block->instructions;
        if (timing) {
            enter(block);
        }
    }
}

static void print_counter(FILE *file, const struct counter *counter)
{
    fprintf(file, " %" PRIu64, counter->instructions);
    for (int kind = 0; timing && kind < KINDS; kind++) {
        fprintf(file, " %" PRIu64, counter->units[kind]);
    }
    if (timing) {
        fprintf(file, " %" PRIu64, counter->fetching);
    }
    fprintf(file, "\n");
}

#include "marks.h"

static void access_data(unsigned int cpu, uint32_t info, uint64_t address, void *data)
{
    const struct instruction *const instruction = data;
    (void)cpu;
    if (present == NULL || instruction->block != present) {
        return;
    }
    const uint64_t size = UINT64_C(1) << qemu_plugin_mem_size_shift(info);
    const bool store = qemu_plugin_mem_is_store(info);
    struct memory *memory = memory_of(address);
    if (memory == NULL && number_of_parts != 0 && is_register(address)) {
        memory = &registers;
        count->registers++;
    }
    if (memory == NULL) {
        unknown = address;
        unknown_in = present->first;
        return;
    }
    if (!store && address % size != 0 && size <= 4) {
        spend(unaligned, MEMORY);
        began += unaligned;
    }
    if (instruction->overlaps && accessed_port != memory->port && accessing != instruction) {
        spend(other_memory, MEMORY);
        began += other_memory;
    }
    accessed_port = memory->port;
    if (!memory->timed || (accessing == instruction && accessed_word == address / bus)) {
        return;
    }
    accesses = accessing == instruction ? accesses + 1 : 0;
    accessing = instruction;
    accessed_word = address / bus;
    fetch_until(instruction->before);
    wait_for(transfer(memory, address, size, store, began + instruction->before + accesses * cycle));
    struct memory *const ahead = instruction->preload == 0 ? NULL : memory_of(address + (uint64_t)instruction->preload);
    if (ahead != NULL) {
        preload(ahead, address + (uint64_t)instruction->preload, began + instruction->before);
    }
}

static struct code *code_at(uint64_t address)
{
    size_t low = 0, high = number_of_codes;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (code[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < number_of_codes && code[low].address == address ? &code[low] : NULL;
}

static void *allocated(size_t number, size_t size)
{
    void *const made = calloc(number, size); /* lives as long as the translated code */
    if (made == NULL) {
        abort();
    }
    return made;
}

/* Add the parts of the code that `c` needs and the instruction before it did not. */
static void add_steps(struct block *block, const struct code *c)
{
    for (uint64_t address = c->address; address < c->address + c->size; address += 2) {
        struct memory *const memory = memory_of(address);
        if (memory == NULL) {
            block->unknown = address;
        } else if (memory->fetch_timed) {
            const struct step *const last = block->number_of_steps ? &block->steps[block->number_of_steps - 1] : NULL;
            if (last == NULL || last->memory != memory || last->address / memory->granule != address / memory->granule) {
                block->steps[block->number_of_steps++] = (struct step){memory, address, (uint32_t)block->total};
            }
        }
    }
}

static void time_block(struct block *block, struct qemu_plugin_tb *tb)
{
    block->steps = allocated(2 * block->instructions, sizeof *block->steps);
    struct instruction *const instructions = allocated(block->instructions, sizeof *instructions);
    for (size_t i = 0; i < block->instructions; i++) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
        const uint64_t address = qemu_plugin_insn_vaddr(insn);
        const struct code *const c = code_at(address);
        if (c == NULL) {
            block->unknown = address;
            continue;
        }
        add_steps(block, c);
        instructions[i] = (struct instruction){block, (uint32_t)block->total, c->overlaps, c->preload};
        qemu_plugin_register_vcpu_mem_cb(insn, access_data, 0, 3, &instructions[i]);
        block->units[c->kind] += c->units;
        block->total += c->units;
        block->taken = c->taken;
        block->behind = address + c->size;
        block->split |= i == 0 && c->size == 4 && address % 4 != 0;
    }
    block->next = blocks;
    blocks = block;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    struct block *const block = allocated(1, sizeof *block);
    (void)id;
    block->instructions = qemu_plugin_tb_n_insns(tb);
    block->first = qemu_plugin_tb_vaddr(tb);
    block->what = kind_of(block->first);
    if (block->instructions != 0) {
        find_part(block, qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, block->instructions - 1)));
    }
    block->unknown = NOTHING;
    if (timing) {
        time_block(block, tb);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, number_of_parts ? execute_marked : execute, 0, block);
}

static void print_blocks(void)
{
    FILE *const file = fopen(blocks_output, "w");
    for (struct block *block = blocks; file != NULL && block != NULL; block = block->next) {
        if (block->executions != 0) {
            for (int kind = 0; kind < KINDS; kind++) {
                block->spent.units[kind] += block->units[kind] * block->executions;
            }
            fprintf(file, "%" PRIx64 " %" PRIx64 " %" PRIu64, block->first, block->behind, block->executions);
            print_counter(file, &block->spent);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void end(qemu_plugin_id_t id, void *data)
{
    if (number_of_parts != 0) {
        return; /* each run was written when it ended */
    }
    FILE *const file = fopen(output, "w");
    (void)id, (void)data;
    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < number_of_calls; i++) {
        fprintf(file, "%d", calls[i].function);
        print_counter(file, &calls[i].counter);
    }
    fprintf(file, "0");
    print_counter(file, &rest);
    print_unknown(file);
    fclose(file);
    if (blocks_output != NULL) {
        print_blocks();
    }
}

static int read_table(const char *path)
{
    FILE *const file = fopen(path, "r");
    struct function f;
    if (file == NULL) {
        return -1;
    }
    while (number_of_functions < sizeof functions / sizeof *functions &&
           fscanf(file, "%" SCNx64 " %" SCNx64 " %d", &f.first, &f.last, &f.what) == 3) {
        functions[number_of_functions++] = f;
    }
    fclose(file);
    return 0;
}

static bool read_code(FILE *file)
{
    if (number_of_codes == room_for_codes) {
        room_for_codes = room_for_codes ? 2 * room_for_codes : 4096;
        code = realloc(code, room_for_codes * sizeof *code);
    }
    struct code *const c = code == NULL ? NULL : &code[number_of_codes++];
    if (c != NULL) {
        c->preload = 0;
    }
    return c != NULL && fscanf(file, "%" SCNx64 " %u %u %d %d %d", &c->address, &c->size, &c->units, &c->taken, &c->kind,
                               &c->overlaps) == 6 &&
           c->kind >= 0 && c->kind < WAITING;
}

static bool read_preload(FILE *file)
{
    uint64_t address;
    int64_t distance;
    if (fscanf(file, "%" SCNx64 " %" SCNd64, &address, &distance) != 2 || code_at(address) == NULL) {
        return false;
    }
    code_at(address)->preload = distance;
    return true;
}

static bool read_memory(FILE *file)
{
    struct memory m = {0};
    unsigned int port;
    return fscanf(file, "%" SCNx64 " %" SCNx64 " %u", &m.first, &m.last, &m.width) == 3 &&
           fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &m.waits, &m.burst, &m.write_waits,
                  &m.hidden, &m.fetch_waits) == 5 &&
           fscanf(file, "%d %d %d %u", &m.prefetch, &m.fetch_cache, &m.read_cache, &port) == 4 && add_memory(&m, port);
}

static bool read_cache(FILE *file)
{
    struct cache c = {0};
    uint32_t size;
    char policy[16];
    return fscanf(file, "%u %u %u %u %15s %" SCNu64 " %" SCNu64 " %d", &size, &c.line, &c.sector, &c.ways, policy, &c.hit,
                  &c.miss, &c.write_back) == 8 &&
           add_cache(&c, size, policy);
}

static bool read_core(FILE *file)
{
    return fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &cycle, &split_target, &unaligned,
                  &other_memory, &bus) == 5;
}

static int read_timing(const char *path)
{
    FILE *const file = fopen(path, "r");
    char word[16];
    bool good = file != NULL;
    while (good && fscanf(file, "%15s", word) == 1) {
        good = strcmp(word, "code") == 0     ? read_code(file)
               : strcmp(word, "memory") == 0 ? read_memory(file)
               : strcmp(word, "cache") == 0  ? read_cache(file)
               : strcmp(word, "core") == 0   ? read_core(file)
               : strcmp(word, "preload") == 0 ? read_preload(file)
                                             : false;
    }
    if (file != NULL) {
        fclose(file);
    }
    timing = true;
    return good ? 0 : -1;
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "table=", 6) == 0 && read_table(argv[i] + 6) != 0) {
            return -1;
        }
        if (strncmp(argv[i], "timing=", 7) == 0 && read_timing(argv[i] + 7) != 0) {
            return -1;
        }
        if (strncmp(argv[i], "marks=", 6) == 0 && read_marks(argv[i] + 6) != 0) {
            return -1;
        }
        if (strncmp(argv[i], "runs=", 5) == 0) {
            wanted_runs = atoi(argv[i] + 5);
        }
        if (strncmp(argv[i], "out=", 4) == 0) {
            output = strdup(argv[i] + 4);
        }
        if (strncmp(argv[i], "blocks=", 7) == 0) {
            blocks_output = strdup(argv[i] + 7);
        }
    }
    if (output == NULL || !start_marks(output)) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
