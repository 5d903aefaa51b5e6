/* Times a fixed piece of work, so that the speed of the machine is known beside that of the programs measured on it.
 *
 * Half of the work are integers, each of which needs the one before it; the other half are steps through memory that
 * no cache of a single processor holds, each to a place that only the one before it names. How much it is stands with
 * the number of the version: it is never fitted to a machine, so that times of one version compare, whenever and
 * wherever they were taken. Whoever changes the work, or how it is compiled, gives it another number.
 *
 * Writes the version, the integers, the steps, and nanoseconds of processor time and of the clock on the wall.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { VERSION = 1, INTEGERS = 3750000, STEPS = 65000, LINES = 1 << 17, WORDS = 8 };

static long long now(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void)
{
    uint64_t *lines, number = 1, place = 0;
    volatile uint64_t kept;
    long long wall, processor;

    lines = mmap(NULL, sizeof(uint64_t) * LINES * WORDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED)
        return 1;
    /* A full cycle through all lines, as this generator has; its distances are of use to no prefetcher. */
    for (uint64_t line = 0; line < LINES; line++)
        lines[line * WORDS] = (line * 1664525 + 1013904223) % LINES;

    wall = now(CLOCK_MONOTONIC);
    processor = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < INTEGERS; i++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        number ^= number >> 29;
    }
    for (int i = 0; i < STEPS; i++)
        place = lines[place * WORDS];
    kept = number + place;
    processor = now(CLOCK_PROCESS_CPUTIME_ID) - processor;
    wall = now(CLOCK_MONOTONIC) - wall;
    (void)kept;
    printf("%d %d %d %lld %lld\n", VERSION, INTEGERS, STEPS, processor, wall);
    return 0;
}
