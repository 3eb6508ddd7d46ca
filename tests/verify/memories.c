/* Print how long a core waits for accesses: `cache` and `memory` lines as in counter.c, then `gap` and the cycles
 * between the end of an access and the next, then lines KIND ADDRESS. */
#include <stdio.h>

#include "memories.h"

int main(void)
{
    char word[16], policy[16];
    uint64_t address, gap = 0, now = 0;
    while (scanf("%15s", word) == 1) {
        if (strcmp(word, "cache") == 0) {
            struct cache c = {0};
            uint32_t size;
            if (scanf("%u %u %u %u %15s %" SCNu64 " %" SCNu64 " %d", &size, &c.line, &c.sector, &c.ways, policy, &c.hit,
                      &c.miss, &c.write_back) != 8 || !add_cache(&c, size, policy)) {
                return 1;
            }
        } else if (strcmp(word, "memory") == 0) {
            struct memory m = {0};
            if (scanf("%" SCNx64 " %" SCNx64 " %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %d %d %d",
                      &m.first, &m.last, &m.width, &m.waits, &m.burst, &m.write_waits, &m.hidden, &m.fetch_waits,
                      &m.prefetch, &m.fetch_cache, &m.read_cache) != 11 ||
                !add_memory(&m, (unsigned int)number_of_memories)) {
                return 1;
            }
        } else if (strcmp(word, "gap") == 0) {
            if (scanf("%" SCNu64, &gap) != 1) {
                return 1;
            }
        } else if (scanf("%" SCNx64, &address) == 1) {
            struct memory *const m = memory_of(address);
            const bool is_fetch = strcmp(word, "fetch") == 0;
            const bool timed = is_fetch ? m->fetch_timed : m->timed;
            const uint64_t wait = !timed     ? 0
                                  : is_fetch ? fetch(m, address, now)
                                             : transfer(m, address, 4, strcmp(word, "write") == 0, now);
            printf("%" PRIu64 "\n", wait);
            now += wait + gap;
        }
    }
    return 0;
}
