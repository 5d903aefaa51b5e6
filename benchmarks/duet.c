/* One kind of work, as often as the file `rounds` says: `integer`, `memory` or `files`. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES (1u << 22)

static uint64_t next(uint64_t x)
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

/* Reads and writes all over 32 MB, more than the caches of one core hold. */
static int memory(unsigned long rounds)
{
    uint64_t *places = malloc(PLACES * sizeof *places), state = 88172645463325252u;

    if (!places)
        return 1;
    memset(places, 1, PLACES * sizeof *places);
    while (rounds--) {
        state = next(state);
        places[state % PLACES] += state;
    }
    return places[0] == 0;
}

static int files(unsigned long rounds)
{
    char data[4096] = {1};

    while (rounds--) {
        FILE *file = fopen("scratch", "w+");

        if (!file || fwrite(data, sizeof data, 1, file) != 1 || fseek(file, 0, SEEK_SET))
            return 1;
        if (fread(data, sizeof data, 1, file) != 1 || fclose(file) || remove("scratch"))
            return 1;
    }
    return 0;
}

static int integer(unsigned long rounds)
{
    volatile uint64_t state = 88172645463325252u;

    while (rounds--)
        state = next(state);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long rounds;
    FILE *file = fopen("rounds", "r");

    if (argc != 2 || !file || fscanf(file, "%lu", &rounds) != 1)
        return 1;
    fclose(file);
    if (!strcmp(argv[1], "memory"))
        return memory(rounds);
    return strcmp(argv[1], "files") ? integer(rounds) : files(rounds);
}
