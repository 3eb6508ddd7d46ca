/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Memories and caches of a microcontroller: how long the core waits for each access, beyond an access without waits.
 *
 * Times are units of cycles (`scale` units are one cycle). A read that begins at time t has its data at t + waits, and
 * keeps the memory busy until t + waits + 1 cycle. An access that is wider than the memory takes several reads. A cache
 * fills a sector of a line, which may be all of it, from the requested part on, in a circle: the core goes on with the
 * first part while the others follow. A memory that prefetches reads the part of the code behind each one that the core
 * takes from it, when it is free, into the prefetch buffer. Such a part enters the cache only if the core waits for it,
 * which is a miss, and only if it is a whole sector. A read that began is not abandoned. Writes go through a write
 * buffer unless `write_waits` says otherwise.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CACHE = -1, MOST_MEMORIES = 64, MOST_CACHES = 8, MOST_SECTORS = 64 };
enum policy { LRU = 0, ROUND_ROBIN = 1, PSEUDO_RANDOM = 2 };
#define NOTHING UINT64_MAX

struct line {
    uint64_t address; /* NOTHING: empty */
    uint64_t used;    /* time of the last access, for LRU */
    uint64_t arrival; /* time when the first part of its last fill has arrived */
    uint32_t first;   /* number of that part in its sector */
    uint32_t filled;  /* number of the sector that was filled last */
    uint64_t present; /* a bit for each sector that it has */
    bool dirty;
};

struct cache {
    uint32_t line, ways, sector, sets;
    uint64_t hit, miss; /* units that an access waits */
    int policy, write_back;
    struct line *lines; /* set by set */
    uint32_t next;      /* way that is replaced next, or the state of the pseudo-random generator */
    uint64_t accesses;
    uint64_t ready_at[2]; /* times when the last two fills by PLD end */
};

/* What a memory is doing; the memories of several ranges of addresses may be the same one. */
struct port {
    uint64_t free_at;     /* time when the last read ends */
    uint64_t buffered;    /* address of the part in the fetch buffer, without a cache */
    uint64_t ahead;       /* address of the part in the prefetch buffer */
    uint64_t ahead_ready; /* time of its arrival */
};

struct memory {
    uint64_t first, last; /* addresses */
    struct port *port;
    uint32_t width, code_width; /* bytes of a read, and of a fetch, which is at least a word */
    uint64_t waits, burst, write_waits;
    uint64_t hidden;      /* units of waiting for a load that the core does not notice */
    uint64_t fetch_waits; /* further units of a fetch without a cache */
    int prefetch, fetch_cache, read_cache;
    bool timed;           /* whether an access to data may wait, */
    bool fetch_timed;     /* and whether a fetch may */
    uint32_t granule;     /* bytes of code that are fetched together */
};

static struct port ports[MOST_MEMORIES], register_port;
static struct memory memories[MOST_MEMORIES];
static struct cache caches[MOST_CACHES];
static size_t number_of_memories, number_of_caches;
static uint64_t cycle = 1; /* units of a cycle */

/* Registers of peripherals and of the core, as a memory that never waits. */
static struct memory registers = {.port = &register_port, .width = 4, .fetch_cache = NO_CACHE, .read_cache = NO_CACHE};

/* Whether the system address map of all M-profile cores has registers there: peripherals, then the private peripheral
 * bus and the vendor's part of the system space (Armv7-M Architecture Reference Manual, DDI 0403E, B3.1). */
static bool is_register(uint64_t address)
{
    return (address >= 0x40000000 && address <= 0x5FFFFFFF) || (address >= 0xE0000000 && address <= 0xFFFFFFFF);
}

static struct memory *memory_of(uint64_t address)
{
    static struct memory *recent = memories;
    if (address >= recent->first && address <= recent->last) {
        return recent;
    }
    for (size_t i = 0; i < number_of_memories; i++) {
        if (address >= memories[i].first && address <= memories[i].last) {
            return recent = &memories[i];
        }
    }
    return NULL;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct line *set_of(const struct cache *cache, uint64_t address)
{
    return cache->lines + (address / cache->line % cache->sets) * cache->ways;
}

static uint32_t sector_of(const struct cache *cache, uint64_t address)
{
    return (uint32_t)(address % cache->line / cache->sector);
}

/* The line that `address` belongs to, whether or not its sector is there; or NULL. */
static struct line *find_line(const struct cache *cache, uint64_t address)
{
    struct line *const set = set_of(cache, address);
    for (uint32_t way = 0; way < cache->ways; way++) {
        if (set[way].address == address / cache->line * cache->line) {
            return &set[way];
        }
    }
    return NULL;
}

/* The line with `address`, or NULL. */
static struct line *line_with(const struct cache *cache, uint64_t address)
{
    struct line *const line = find_line(cache, address);
    return line != NULL && (line->present >> sector_of(cache, address) & 1) != 0 ? line : NULL;
}

static struct line *used_line(struct cache *cache, uint64_t address)
{
    struct line *const line = line_with(cache, address);
    if (line != NULL) {
        line->used = ++cache->accesses;
    }
    return line;
}

/* The line that makes room for `address`: an empty one, or the one that the policy chooses. */
static struct line *replaced_line(struct cache *cache, uint64_t address)
{
    struct line *const set = set_of(cache, address);
    struct line *oldest = set;
    for (uint32_t way = 0; way < cache->ways; way++) {
        if (set[way].address == NOTHING) {
            return &set[way];
        }
        if (set[way].used < oldest->used) {
            oldest = &set[way];
        }
    }
    if (cache->policy == LRU) {
        return oldest;
    }
    if (cache->policy == ROUND_ROBIN) {
        return &set[cache->next++ % cache->ways];
    }
    cache->next = cache->next * 1664525u + 1013904223u; /* Numerical Recipes, 7.1 */
    return &set[(cache->next >> 16) % cache->ways];
}

/* The time from the arrival of the first part of `bytes` to that of the last one. */
static uint64_t burst_time(const struct memory *memory, uint64_t bytes)
{
    return (bytes - 1) / memory->width * (memory->burst + cycle);
}

/* Read `bytes` in parts of the memory's width, from time `now` on; returns the time of arrival of the first part, which
 * takes `more` units than usual. */
static uint64_t read_parts(struct memory *memory, uint64_t bytes, uint64_t more, uint64_t now)
{
    const uint64_t arrival = at_least(now, memory->port->free_at) + memory->waits + more;
    memory->port->free_at = arrival + cycle + burst_time(memory, bytes);
    return arrival;
}

/* Read `bytes` and return the time of arrival of the last part. */
static uint64_t read_all(struct memory *memory, uint64_t bytes, uint64_t more, uint64_t now)
{
    return read_parts(memory, bytes, more, now) + burst_time(memory, bytes);
}

/* Give the sector with `address` a place, and return its line. A line that was written is written back after the read,
 * which began before. */
static struct line *enter_line(struct cache *cache, const struct memory *memory, uint64_t address, uint64_t now)
{
    struct line *const present = find_line(cache, address);
    struct line *const line = present != NULL ? present : replaced_line(cache, address);
    struct memory *const written = present == NULL && line->dirty ? memory_of(line->address) : NULL;
    line->first = (uint32_t)(address % cache->sector / memory->width);
    line->filled = sector_of(cache, address);
    line->present = (present != NULL ? line->present : 0) | UINT64_C(1) << line->filled;
    line->address = address / cache->line * cache->line;
    line->used = ++cache->accesses;
    line->dirty = present != NULL && line->dirty;
    if (written != NULL) {
        const uint64_t parts = (cache->line + written->width - 1) / written->width;
        written->port->free_at = at_least(now, written->port->free_at) + parts * (written->write_waits + cycle);
    }
    return line;
}

/* Fill the sector with `address` and return its line. */
static struct line *fill_line(struct cache *cache, struct memory *memory, uint64_t address, uint64_t now)
{
    const uint64_t arrival = read_parts(memory, cache->sector, 0, now + cache->miss);
    struct line *const line = enter_line(cache, memory, address, now);
    line->arrival = arrival;
    return line;
}

/* The time when the part of a line with the last of the `bytes` at `address` is there, or that with the last ones of the
 * sector. The core waited for its other sectors. */
static uint64_t part_arrival(const struct cache *cache, const struct memory *memory, const struct line *line,
                             uint64_t address, uint64_t bytes)
{
    const uint64_t parts = cache->sector > memory->width ? cache->sector / memory->width : 1;
    const uint64_t offset = address % cache->sector + bytes - 1;
    const uint64_t part = offset < cache->sector ? offset / memory->width : parts - 1;
    if (line->filled != sector_of(cache, address)) {
        return 0;
    }
    return line->arrival + (part + parts - line->first) % parts * (memory->burst + cycle);
}

static uint64_t wait_until(uint64_t arrival, uint64_t now)
{
    return arrival > now ? arrival - now : 0;
}

static bool is_there(const struct memory *memory, uint64_t part)
{
    const struct cache *const cache = memory->fetch_cache == NO_CACHE ? NULL : &caches[memory->fetch_cache];
    return cache == NULL ? memory->port->buffered == part : line_with(cache, part) != NULL;
}

/* Fetch the instructions at `address` at time `now`; returns the time that the core waits. */
static uint64_t fetch(struct memory *memory, uint64_t address, uint64_t now)
{
    const uint32_t width = memory->code_width;
    const uint64_t part = address / width * width, bytes = part + width - address;
    struct cache *const cache = memory->fetch_cache == NO_CACHE ? NULL : &caches[memory->fetch_cache];
    struct line *line = cache == NULL ? NULL : used_line(cache, address);
    uint64_t wait;
    if (line != NULL) {
        memory->port->buffered = part;
        return cache->hit + wait_until(part_arrival(cache, memory, line, address, bytes), now);
    }
    if (memory->port->buffered == part && (cache == NULL || memory->prefetch)) {
        return 0; /* with a cache, a part that came from the prefetch buffer */
    }
    if (memory->port->ahead == part) {
        wait = wait_until(memory->port->ahead_ready, now);
        if (wait > 0 && cache != NULL && cache->sector == width) {
            enter_line(cache, memory, address, now)->arrival = memory->port->ahead_ready;
        }
    } else if (cache != NULL) {
        line = fill_line(cache, memory, address, now);
        wait = cache->hit + wait_until(part_arrival(cache, memory, line, address, bytes), now);
    } else {
        wait = wait_until(read_all(memory, width, memory->fetch_waits, now), now);
    }
    memory->port->buffered = part;
    if (memory->prefetch && memory->port->ahead != part + width && !is_there(memory, part + width)) {
        memory->port->ahead = part + width;
        memory->port->ahead_ready = read_all(memory, width, memory->fetch_waits, now + wait);
    }
    return wait;
}

/* Read or write `bytes` of data at `address` at time `now`; returns the time that the core waits. */
static uint64_t transfer(struct memory *memory, uint64_t address, uint64_t bytes, bool store, uint64_t now)
{
    struct cache *const cache = memory->read_cache == NO_CACHE ? NULL : &caches[memory->read_cache];
    if (cache == NULL || (store && !cache->write_back)) {
        return store ? memory->write_waits : wait_until(read_all(memory, bytes, 0, now), now + memory->hidden);
    }
    struct line *line = used_line(cache, address);
    const bool found = line != NULL;
    if (!found) {
        line = fill_line(cache, memory, address, now);
    }
    line->dirty |= store;
    if (store) { /* the write buffer waits for the line */
        return 0;
    }
    return cache->hit + wait_until(part_arrival(cache, memory, line, address, bytes), now);
}

/* Fill the line with `address` at time `now`, unless it is there; the core goes on. PLD is a hint: it has no effect while
 * both linefill buffers of a Cortex-M7 (DDI 0489F, 5.9) are filled by earlier ones. */
static void preload(struct memory *memory, uint64_t address, uint64_t now)
{
    struct cache *const cache = memory->read_cache == NO_CACHE ? NULL : &caches[memory->read_cache];
    if (cache == NULL || line_with(cache, address) != NULL) {
        return;
    }
    uint64_t *const ready_at = cache->ready_at[0] <= cache->ready_at[1] ? &cache->ready_at[0] : &cache->ready_at[1];
    if (*ready_at <= now) {
        fill_line(cache, memory, address, now);
        *ready_at = memory->port->free_at;
    }
}

static int named_policy(const char *name)
{
    return strcmp(name, "lru") == 0 ? LRU : strcmp(name, "round-robin") == 0 ? ROUND_ROBIN : PSEUDO_RANDOM;
}

/* Add the cache or memory that a line of the description of the part has; returns whether it could. */
static bool add_cache(const struct cache *described, uint32_t size, const char *policy)
{
    const uint32_t set = described->line * described->ways;
    if (number_of_caches == MOST_CACHES || set == 0 || size < set || described->sector == 0 ||
        described->line / described->sector > MOST_SECTORS) {
        return false;
    }
    struct cache *const cache = &caches[number_of_caches++];
    *cache = *described;
    cache->sets = size / set;
    cache->policy = named_policy(policy);
    cache->next = cache->policy == PSEUDO_RANDOM;
    const size_t lines = (size_t)cache->sets * cache->ways;
    cache->lines = calloc(lines, sizeof *cache->lines);
    for (size_t i = 0; cache->lines != NULL && i < lines; i++) {
        cache->lines[i].address = NOTHING;
    }
    return cache->lines != NULL;
}

static bool add_memory(const struct memory *described, unsigned int port)
{
    const int most = (int)number_of_caches;
    if (number_of_memories == MOST_MEMORIES || port >= MOST_MEMORIES || described->width == 0 ||
        described->fetch_cache >= most || described->read_cache >= most) {
        return false;
    }
    struct memory *const memory = &memories[number_of_memories++];
    *memory = *described;
    memory->port = &ports[port];
    memory->port->buffered = memory->port->ahead = NOTHING;
    memory->code_width = memory->width < 4 ? 4 : memory->width;
    memory->granule = memory->code_width;
    if (memory->fetch_cache != NO_CACHE && caches[memory->fetch_cache].line < memory->granule) {
        memory->granule = caches[memory->fetch_cache].line;
    }
    memory->timed = memory->waits + memory->write_waits + memory->burst > 0 || memory->width < memory->code_width ||
                    memory->fetch_cache != NO_CACHE || memory->read_cache != NO_CACHE;
    memory->fetch_timed = memory->timed || memory->fetch_waits > 0;
    memory->prefetch |= memory->fetch_waits > 0; /* by the core */
    return true;
}
