/* A program that times its own functions: one line "name size nanoseconds" for each call, in the order of calls.
   The functions grow in different ways, and no optimization can leave a call out, as results are printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST = 480, STEP = 20, ROUNDS = 2 };
static int numbers[LARGEST], copy[LARGEST];
static volatile unsigned kept;

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static unsigned constant(int n)
{
    unsigned h = n;
    for (int i = 0; i < 400; i++) h = h * 31 + i;
    return h;
}
static unsigned search(int n)
{
    unsigned found = 0;
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < n; i++) found += numbers[i] == round;
    return found;
}
static unsigned hash(int n)
{
    unsigned h = 17;
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < n; i++) h = (h ^ numbers[i]) * 16777619u;
    return h;
}
static unsigned sum(int n)
{
    unsigned total = 0;
    for (int round = 0; round < 40; round++)
        for (int i = 0; i < n; i++) total += numbers[i] / (round + 3);
    return total;
}
static unsigned insertion(int n)
{
    memcpy(copy, numbers, sizeof copy);
    for (int i = 1; i < n; i++)
        for (int j = i; j && copy[j - 1] > copy[j]; j--) {
            int swap = copy[j];
            copy[j] = copy[j - 1], copy[j - 1] = swap;
        }
    return copy[n / 2];
}
static unsigned pairs(int n)
{
    unsigned found = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) found += (numbers[i] ^ numbers[j]) & 1;
    return found;
}
static unsigned sorted(int n)
{
    memcpy(copy, numbers, sizeof copy);
    qsort(copy, n, sizeof *copy, compare);
    return copy[n / 2];
}
static unsigned allocate(int n)
{
    unsigned h = 0;
    for (int i = 0; i < 40; i++) {
        char *block = malloc(n * 8);
        memset(block, i, n * 8);
        h += block[n];
        free(block);
    }
    return h;
}
int main(void)
{
    static const struct { const char *name; unsigned (*call)(int); } functions[] = {
        {"constant", constant}, {"search", search}, {"hash", hash}, {"sum", sum},
        {"insertion", insertion}, {"pairs", pairs}, {"sorted", sorted}, {"allocate", allocate},
    };
    for (int i = 0; i < LARGEST; i++) numbers[i] = (i * 7919 + 13) % 10007;
    for (int round = 0; round < ROUNDS; round++)
        for (int n = STEP; n <= LARGEST; n += STEP)
            for (unsigned f = 0; f < sizeof functions / sizeof *functions; f++) {
                long long start = now();
                kept += functions[f].call(n);
                printf("%s %d %lld\n", functions[f].name, n, now() - start);
            }
    return 0;
}
