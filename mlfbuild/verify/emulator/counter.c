/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A QEMU plugin that counts the instructions of one run of a network, by call of its operator functions.
 *
 *   -plugin counter.so,table=FILE,out=FILE
 *
 * Each line of the table has the first and the last address of a function and its number: 0 for functions that call
 * the operators, positive numbers for functions of operators, -1 for the caller of the network. A run begins in a
 * function with number 0 and ends in the caller. Functions that an operator's function calls are counted for it. The
 * output has a line for each call, in order: the number of the function and its instructions; and a line with number 0
 * for the rest.
 *
 * QEMU translates blocks of instructions, which run to their end unless a fault occurs. The few functions of its
 * interface (qemu-plugin.h, version 1) are declared here, because distributions ship no header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*executed)(unsigned int cpu, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated callback);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed callback, int flags, void *data);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, void *), void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);

EXPORTED int qemu_plugin_version = 1;

enum { CALLER = -1, EXECUTOR = 0, INSIDE = -2 };

struct function {
    uint64_t first, last;
    int what;
};

struct call {
    int function;
    uint64_t instructions;
};

struct block {
    uint64_t instructions;
    int what;
};

static struct function functions[4096];
static size_t number_of_functions;
static struct call calls[65536];
static size_t number_of_calls;
static uint64_t rest;
static uint64_t *count; /* the counter of the present function, or NULL outside of a run */
static int runs;
static const char *output;

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

static void execute(unsigned int cpu, void *data)
{
    const struct block *const block = data;
    (void)cpu;
    if (block->what == CALLER) {
        runs += count != NULL;
        count = NULL;
    } else if (block->what == EXECUTOR && runs == 0) {
        count = &rest;
    } else if (block->what > EXECUTOR && count != NULL && number_of_calls < sizeof calls / sizeof *calls) {
        calls[number_of_calls].function = block->what;
        count = &calls[number_of_calls++].instructions;
    }
    if (count != NULL) {
        *count += block->instructions;
    }
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    struct block *const block = malloc(sizeof *block); /* lives as long as the translated code */
    (void)id;
    if (block == NULL) {
        abort();
    }
    block->instructions = qemu_plugin_tb_n_insns(tb);
    block->what = kind_of(qemu_plugin_tb_vaddr(tb));
    qemu_plugin_register_vcpu_tb_exec_cb(tb, execute, 0, block);
}

static void end(qemu_plugin_id_t id, void *data)
{
    FILE *const file = fopen(output, "w");
    (void)id, (void)data;
    if (file == NULL) {
        return;
    }
    for (size_t i = 0; i < number_of_calls; i++) {
        fprintf(file, "%d %" PRIu64 "\n", calls[i].function, calls[i].instructions);
    }
    fprintf(file, "0 %" PRIu64 "\n", rest);
    fclose(file);
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

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "table=", 6) == 0 && read_table(argv[i] + 6) != 0) {
            return -1;
        }
        if (strncmp(argv[i], "out=", 4) == 0) {
            output = strdup(argv[i] + 4);
        }
    }
    if (output == NULL) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
