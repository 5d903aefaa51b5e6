/* A busy loop of as many rounds as a file says: `rounds` in the current directory, or the one named. */

#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned long rounds = 0;
    volatile uint64_t state = 88172645463325252u;
    FILE *file = fopen(argc > 1 ? argv[1] : "rounds", "r");
    if (!file || fscanf(file, "%lu", &rounds) != 1)
        return 1;
    fclose(file);
    while (rounds--) {
        uint64_t x = state;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state = x;
    }
    return 0;
}
