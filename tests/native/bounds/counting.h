/* What instrumented programs count: visits of the heads of loops, entries of loops, jumps backward.
   A run ends early, with what was counted until then, after too many steps or where an assumption of the bounds
   does not hold any more: numbers overflow, or an unsigned number falls below zero. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef STEPS
#define STEPS 20000
#endif
#define MOST_LOOPS 64

static long heads[MOST_LOOPS], entries[MOST_LOOPS], jumps, steps;
static sigjmp_buf out;
static unsigned long long state;
static int memory[1 << 16];

static unsigned next_number(void)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33);
}

static int step(void)
{
    if (++steps > STEPS)
        siglongjmp(out, 1);
    return 1;
}

static int head(int loop) { heads[loop]++; return step(); }
static int enter(int loop) { entries[loop]++; return 0; }
static int jump(void) { jumps++; return step(); }
static int nondet(void) { return next_number() % 4 != 0; }
static int unknown() { return next_number() % 3; }
static unsigned less(unsigned a, unsigned b) { if (a < b) siglongjmp(out, 1); return a - b; }
static void stopped(int number) { (void)number; siglongjmp(out, 1); }

/* Mostly small numbers, now and then negative or larger ones. */
static long input(int is_unsigned)
{
    unsigned kind = next_number() % 8;
    long value = next_number() % (kind == 0 ? 3 : kind == 1 ? 70 : 12);
    return kind == 2 && !is_unsigned ? -value : value;
}

#define NONDET nondet()
#define LESS(a, b) less(a, b)
