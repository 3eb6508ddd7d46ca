/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Memories and caches of a microcontroller: how long the core waits for each access, beyond an access without waits.
 *
 * Times are units of cycles (`scale` units are one cycle). A read that begins at time t has its data at t + waits, and
 * keeps the memory busy until t + waits + 1 cycle. A cache fills a line from the requested part on, in a circle: the core
 * goes on with the first part while the others follow. A memory that prefetches begins to read the next part of the
 * code when it is free; such parts stay in the prefetch buffer and do not enter the cache. A read that began is not
 * abandoned. Writes go through a write buffer unless `write_waits` says otherwise.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NO_CACHE = -1, MOST_MEMORIES = 16, MOST_CACHES = 8 };
enum policy { LRU = 0, ROUND_ROBIN = 1, PSEUDO_RANDOM = 2 };
#define NOTHING UINT64_MAX

struct line {
    uint64_t address; /* NOTHING: empty */
    uint64_t used;    /* time of the last access, for LRU */
    uint64_t arrival; /* time when the first part of its fill has arrived */
    uint32_t first;   /* number of that part */
    bool dirty;
};

struct cache {
    uint32_t line, ways, sets;
    uint64_t hit, miss; /* units that an access waits */
    int policy, write_back;
    struct line *lines; /* set by set */
    uint32_t next;      /* way that is replaced next, or the state of the pseudo-random generator */
    uint64_t accesses;
};

struct memory {
    uint64_t first, last; /* addresses */
    uint32_t width;
    uint64_t waits, burst, write_waits;
    int prefetch, fetch_cache, read_cache;
    bool timed;           /* whether an access may wait */
    uint32_t granule;     /* bytes of code that are fetched together */
    uint64_t free_at;     /* time when the last read ends */
    uint64_t buffered;    /* address of the part in the fetch buffer, without a cache */
    uint64_t ahead;       /* address of the part in the prefetch buffer */
    uint64_t ahead_ready; /* time of its arrival */
};

static struct memory memories[MOST_MEMORIES];
static struct cache caches[MOST_CACHES];
static size_t number_of_memories, number_of_caches;
static uint64_t cycle = 1; /* units of a cycle */

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

/* The line with `address`, or NULL. */
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

static struct line *used_line(struct cache *cache, uint64_t address)
{
    struct line *const line = find_line(cache, address);
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

/* Read `bytes` in parts of the memory's width, from time `now` on; returns the time of arrival of the first part. */
static uint64_t read_parts(struct memory *memory, uint32_t bytes, uint64_t now)
{
    const uint64_t arrival = at_least(now, memory->free_at) + memory->waits;
    const uint64_t further = bytes > memory->width ? (bytes - 1) / memory->width : 0;
    memory->free_at = arrival + cycle + further * (memory->burst + cycle);
    return arrival;
}

/* Make a line of `cache` for `address` and return it. A line that was written is written back after the read. */
static struct line *fill_line(struct cache *cache, struct memory *memory, uint64_t address, uint64_t now)
{
    struct line *const line = replaced_line(cache, address);
    struct memory *const written = line->address != NOTHING && line->dirty ? memory_of(line->address) : NULL;
    const uint64_t start = address / cache->line * cache->line;
    line->arrival = read_parts(memory, cache->line, now + cache->miss);
    line->first = (uint32_t)((address - start) / memory->width);
    line->address = start;
    line->used = ++cache->accesses;
    line->dirty = false;
    if (written != NULL) {
        const uint64_t parts = (cache->line + written->width - 1) / written->width;
        written->free_at = at_least(now, written->free_at) + parts * (written->write_waits + cycle);
    }
    return line;
}

/* The time when the part of a line with `address` is there. */
static uint64_t part_arrival(const struct cache *cache, const struct memory *memory, const struct line *line,
                             uint64_t address)
{
    const uint32_t parts = cache->line > memory->width ? cache->line / memory->width : 1;
    const uint32_t part = (uint32_t)((address - line->address) / memory->width);
    return line->arrival + (part + parts - line->first) % parts * (memory->burst + cycle);
}

static uint64_t wait_until(uint64_t arrival, uint64_t now)
{
    return arrival > now ? arrival - now : 0;
}

static bool is_there(const struct memory *memory, uint64_t part)
{
    const struct cache *const cache = memory->fetch_cache == NO_CACHE ? NULL : &caches[memory->fetch_cache];
    return cache == NULL ? memory->buffered == part : find_line(cache, part) != NULL;
}

/* Fetch the instructions at `address` at time `now`; returns the time that the core waits. */
static uint64_t fetch(struct memory *memory, uint64_t address, uint64_t now)
{
    const uint64_t part = address / memory->width * memory->width;
    struct cache *const cache = memory->fetch_cache == NO_CACHE ? NULL : &caches[memory->fetch_cache];
    struct line *const line = cache == NULL ? NULL : used_line(cache, address);
    uint64_t wait;
    if (line != NULL) {
        wait = cache->hit + wait_until(part_arrival(cache, memory, line, address), now);
    } else if (cache == NULL && memory->buffered == part) {
        return 0;
    } else if (memory->ahead == part) {
        wait = wait_until(memory->ahead_ready, now);
    } else if (cache != NULL) {
        wait = cache->hit + wait_until(fill_line(cache, memory, address, now)->arrival, now);
    } else {
        wait = wait_until(read_parts(memory, memory->width, now), now);
    }
    memory->buffered = part;
    if (memory->prefetch && memory->ahead != part + memory->width && !is_there(memory, part + memory->width)) {
        memory->ahead = part + memory->width;
        memory->ahead_ready = read_parts(memory, memory->width, now + wait);
    }
    return wait;
}

/* Read or write data at `address` at time `now`; returns the time that the core waits. */
static uint64_t transfer(struct memory *memory, uint64_t address, bool store, uint64_t now)
{
    struct cache *const cache = memory->read_cache == NO_CACHE ? NULL : &caches[memory->read_cache];
    if (cache == NULL || (store && !cache->write_back)) {
        return store ? memory->write_waits : wait_until(read_parts(memory, memory->width, now), now);
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
    return cache->hit + wait_until(part_arrival(cache, memory, line, address), now);
}

static int named_policy(const char *name)
{
    return strcmp(name, "lru") == 0 ? LRU : strcmp(name, "round-robin") == 0 ? ROUND_ROBIN : PSEUDO_RANDOM;
}

/* Add the cache or memory that a line of the description of the part has; returns whether it could. */
static bool add_cache(const struct cache *described, uint32_t size, const char *policy)
{
    const uint32_t set = described->line * described->ways;
    if (number_of_caches == MOST_CACHES || set == 0 || size < set) {
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

static bool add_memory(const struct memory *described)
{
    const int most = (int)number_of_caches;
    if (number_of_memories == MOST_MEMORIES || described->width == 0 || described->fetch_cache >= most ||
        described->read_cache >= most) {
        return false;
    }
    struct memory *const memory = &memories[number_of_memories++];
    *memory = *described;
    memory->buffered = memory->ahead = NOTHING;
    memory->granule = memory->width;
    if (memory->fetch_cache != NO_CACHE && caches[memory->fetch_cache].line < memory->width) {
        memory->granule = caches[memory->fetch_cache].line;
    }
    memory->timed = memory->waits + memory->write_waits + memory->burst > 0;
    return true;
}
