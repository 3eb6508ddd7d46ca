/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * The part of QEMU's plugin interface that `counter.c` uses, for unicorn: the plugin counts a run in unicorn with the same
 * code as one in QEMU. Python adds `on_block` and `on_access` as hooks of unicorn, both of them native, because
 * a callback to Python for each instruction would take hours.
 */
#include "counter.c"

enum { READ = 16, PC = 11, XPSR = 120, MOST_BLOCKS = 1 << 16 }; /* UC_MEM_READ, UC_ARM_REG_PC, UC_ARM_REG_XPSR */
#define IT_STATE 0x0600FC00u

struct qemu_plugin_insn {
    uint64_t address;
    accessed callback;
    void *data;
};

struct qemu_plugin_tb {
    uint64_t address;
    uint32_t size;
    size_t length;
    struct qemu_plugin_insn *instructions, **by_half; /* the instruction that begins at each half word */
    executed callback;
    void *data;
    struct qemu_plugin_tb *next;
};

typedef int (*reader)(void *uc, uint64_t address, void *bytes, uint64_t size);
typedef int (*register_user)(void *uc, int number, void *value);

static struct qemu_plugin_tb *table[MOST_BLOCKS], *running;
static translated translate_block;
static void (*finish)(qemu_plugin_id_t, void *);
static reader read_memory_of;
static register_user read_register, write_register;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated callback)
{
    (void)id;
    translate_block = callback;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed callback, int flags, void *data)
{
    (void)flags;
    block->callback = callback;
    block->data = data;
}

void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, void *), void *data)
{
    (void)id, (void)data;
    finish = callback;
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, accessed callback, int flags, int rw, void *data)
{
    (void)flags, (void)rw;
    instruction->callback = callback;
    instruction->data = data;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index)
{
    return &block->instructions[index];
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction)
{
    return instruction->address;
}

bool qemu_plugin_mem_is_store(uint32_t info)
{
    return (info >> 8) != 0;
}

unsigned int qemu_plugin_mem_size_shift(uint32_t info)
{
    return info & 0xff;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block)
{
    return block->length;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block)
{
    return block->address;
}

/* Split a block into instructions of 16 and 32 bits. */
static struct qemu_plugin_tb *new_block(void *uc, uint64_t address, uint32_t size)
{
    struct qemu_plugin_tb *const block = allocated(1, sizeof *block);
    block->address = address;
    block->size = size;
    block->instructions = allocated(size / 2, sizeof *block->instructions);
    block->by_half = allocated(size / 2, sizeof *block->by_half);
    for (uint32_t offset = 0; offset < size;) {
        uint16_t half = 0;
        read_memory_of(uc, address + offset, &half, sizeof half);
        struct qemu_plugin_insn *const instruction = &block->instructions[block->length++];
        instruction->address = address + offset;
        block->by_half[offset / 2] = instruction;
        offset += half >= 0xE800 ? 4 : 2;
    }
    return block;
}

EXPORTED void on_block(void *uc, uint64_t address, uint32_t size, void *user)
{
    (void)user;
    struct qemu_plugin_tb **at = &table[address / 2 % MOST_BLOCKS];
    while (*at != NULL && ((*at)->address != address || (*at)->size != size)) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        *at = new_block(uc, address, size);
        if (translate_block != NULL) {
            translate_block(0, *at);
        }
    }
    running = *at;
    if (running->callback != NULL) {
        running->callback(0, running->data);
    }
}

EXPORTED void on_access(void *uc, int type, uint64_t address, int size, int64_t value, void *user)
{
    (void)value, (void)user;
    uint32_t pc = 0, xpsr = 0;
    read_register(uc, PC, &pc);
    read_register(uc, XPSR, &xpsr);
    if (xpsr & IT_STATE) { /* unicorn leaves the state of the IT block behind for the next block */
        xpsr &= ~IT_STATE;
        write_register(uc, XPSR, &xpsr);
    }
    const uint64_t offset = running == NULL ? 0 : pc - running->address;
    const struct qemu_plugin_insn *const current =
        running != NULL && offset < running->size ? running->by_half[offset / 2] : NULL;
    if (current != NULL && current->callback != NULL) {
        const uint32_t shift = size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0;
        current->callback(0, shift | (uint32_t)(type != READ) << 8, address, current->data);
    }
}

/* Prepare the hooks with uc_mem_read, uc_reg_read and uc_reg_write. Without arguments of the plugin, they only note the executed blocks. */
EXPORTED int start(reader of_memory, register_user of_registers, register_user to_registers, int argc, char **argv)
{
    read_memory_of = of_memory;
    read_register = of_registers;
    write_register = to_registers;
    return argc == 0 ? 0 : qemu_plugin_install(0, NULL, argc, argv);
}

/* Call `found` with each executed block, then write the counts of the plugin. */
EXPORTED void stop(void (*found)(uint64_t address, uint32_t size))
{
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        for (const struct qemu_plugin_tb *block = table[i]; found != NULL && block != NULL; block = block->next) {
            found(block->address, block->size);
        }
    }
    if (finish != NULL) {
        finish(0, NULL);
    }
}
