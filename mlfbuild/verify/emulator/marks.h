/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Counts of all code of an image between two marks, by function: a part of `counter.c`, for `marks=FILE,runs=N`.
 *
 * Each line of FILE has the first and the last address of a function, its number, its role, and 0. Roles are 0 for
 * others, 1 if whatever it calls is counted for it, 2 for handlers of interrupts, which are counted in the same way, 3
 * and 4 for the marks at the begin and at the end. Functions with the same number are one. Number 0 is code in none of
 * them. Role 5 is a call with its return address in the last column, role 6 a jump to the function in the last column.
 * The lines of functions are in order of address, and so are the others. The output has a line `run` when a run begins,
 * and at its end a line for each function as for calls, but with its accesses to registers of peripherals and the core
 * after the number, then `end`, so that the runs before a time limit are there. After N runs, the emulator ends.
 *
 * To know for whom code is counted, the functions that were called and not left are kept with their return addresses. A
 * function is left when the instruction at its return address is executed, also if functions that it called ended in a
 * jump (a tail call). A handler has none: it is left when the core goes to another function by neither a call, a jump
 * nor a return, and then the block before the interrupt counts as the one that was executed last.
 */
enum role { OTHER, WITH_CALLS, HANDLER, BEGIN, END, CALL, JUMP };
enum { DEEPEST = 256 };

struct part {
    uint64_t first, last;
    int number, role;
    uint64_t target; /* of a jump, or the return address of a call */
};

struct frame {
    uint64_t back; /* return address, or NOTHING of a handler */
    int owner;     /* number of the function that the code is counted for, or 0 for that with the code */
};

static struct part *parts, *branches; /* in order of address */
static size_t number_of_parts, number_of_branches;
static struct counter *spent; /* by number */
static int most_number, wanted_runs;
static FILE *runs_file;

static struct frame frames[DEEPEST];
static size_t depth;
static size_t handler_depth;                        /* that of the handler's frame, or 0 */
static const struct block *before_it, *interrupted; /* the last block in the run, and that before the handler */
static bool between_marks;

static const struct part *part_in(const struct part *sorted, size_t number, uint64_t address)
{
    size_t low = 0, high = number;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (sorted[middle].last < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < number && address >= sorted[low].first ? &sorted[low] : NULL;
}

static void find_part(struct block *block, uint64_t last_instruction)
{
    block->part = part_in(parts, number_of_parts, block->first);
    block->branch = part_in(branches, number_of_branches, last_instruction);
}

static void print_unknown(FILE *file)
{
    if (unknown != NOTHING) {
        fprintf(file, "unknown %" PRIx64 " %" PRIx64 "\n", unknown, unknown_in);
    }
}

static void begin_run(void)
{
    fprintf(runs_file, between_marks ? "nested\n" : "run\n");
    fflush(runs_file);
    memset(spent, 0, ((size_t)most_number + 1) * sizeof *spent);
    between_marks = true;
    before_it = NULL;
    depth = handler_depth = 0;
}

static void end_run(void)
{
    for (int number = 0; number <= most_number; number++) {
        if (spent[number].instructions != 0) {
            fprintf(runs_file, "%d %" PRIu64, number, spent[number].registers);
            print_counter(runs_file, &spent[number]);
        }
    }
    print_unknown(runs_file);
    fprintf(runs_file, "end\n");
    fflush(runs_file);
    between_marks = false;
    if (++runs == wanted_runs) {
        _Exit(0); /* the firmware may never end, and QEMU has no function for a plugin that ends it */
    }
}

/* Functions below the deepest frame are counted for the owner of that frame. */
static bool push(uint64_t back, int owner)
{
    const bool room = depth < DEEPEST;
    if (room) {
        frames[depth++] = (struct frame){back, owner};
    }
    return room;
}

/* Drop the functions that the core has left, which is now at `address`; `moved` if that is in another function. */
static void leave_functions(uint64_t address, bool moved)
{
    size_t left = depth;
    while (left > 0 && frames[left - 1].back != address) {
        left--;
    }
    if (left > 0) {
        depth = left - 1;
    } else if (handler_depth != 0 && moved) {
        depth = handler_depth - 1;
        before_it = interrupted;
    }
    if (depth < handler_depth) {
        handler_depth = 0;
    }
}

/* Update the frames for `block`, which begins to be executed. */
static void follow(const struct block *block)
{
    const struct part *const part = block->part, *const last = before_it == NULL ? part : before_it->part;
    const bool entered = part != NULL && block->first == part->first;
    const struct part *const branch = before_it == NULL ? NULL : before_it->branch;
    const bool called = entered && branch != NULL && branch->role == CALL;
    const bool jumped = entered && branch != NULL && branch->role == JUMP && branch->target == block->first;
    if (entered && part->role == HANDLER) {
        if (handler_depth != 0) {
            depth = handler_depth - 1; /* the core began this handler when the other one ended */
        } else {
            interrupted = before_it;
        }
        handler_depth = push(NOTHING, part->number) ? depth : 0;
        return;
    }
    if (!called && !jumped) {
        leave_functions(block->first, part != last && (part == NULL || last == NULL || part->number != last->number));
    }
    /* After a handler, this is the block before it. */
    if (entered && before_it != NULL && before_it->branch != NULL && before_it->branch->role == CALL) {
        push(before_it->branch->target, part->role == WITH_CALLS ? part->number : depth ? frames[depth - 1].owner : 0);
    }
}

static void execute_marked(unsigned int cpu, void *data)
{
    struct block *const block = data;
    const struct part *const part = block->part;
    (void)cpu;
    if (present != NULL) {
        leave(block);
        present = NULL;
    }
    if (part != NULL && block->first == part->first && part->role == BEGIN) {
        begin_run();
    } else if (part != NULL && block->first == part->first && part->role == END && between_marks) {
        end_run();
    }
    if (!between_marks || (part != NULL && part->role >= BEGIN)) {
        return;
    }
    follow(block);
    before_it = block;
    const int owner = depth ? frames[depth - 1].owner : 0;
    count = &spent[owner || part == NULL ? owner : part->number];
    count->instructions += block->instructions;
    if (timing) {
        enter(block);
    }
}

static bool append(struct part **list, size_t *number, const struct part *added)
{
    if ((*number & (*number - 1)) == 0) { /* a power of two: twice the room */
        *list = realloc(*list, (*number ? 2 * *number : 1) * sizeof **list);
    }
    if (*list != NULL) {
        (*list)[(*number)++] = *added;
    }
    return *list != NULL;
}

static int read_marks(const char *path)
{
    FILE *const file = fopen(path, "r");
    struct part p;
    bool good = file != NULL;
    while (good && fscanf(file, "%" SCNx64 " %" SCNx64 " %d %d %" SCNx64, &p.first, &p.last, &p.number, &p.role,
                          &p.target) == 5) {
        most_number = p.number > most_number ? p.number : most_number;
        good = p.number >= 0 && (p.role >= CALL ? append(&branches, &number_of_branches, &p)
                                                       : append(&parts, &number_of_parts, &p));
    }
    spent = calloc((size_t)most_number + 1, sizeof *spent);
    return good && fclose(file) == 0 && spent != NULL ? 0 : -1;
}

/* Begin to count by marks if the plugin was asked to; returns whether it could. */
static bool start_marks(const char *path)
{
    runs_file = path == NULL ? NULL : fopen(path, "w");
    return number_of_parts == 0 || runs_file != NULL;
}
