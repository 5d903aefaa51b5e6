/* Ticks of the cheapest clock of the processor that is the same on all cores. */
#ifndef PERUN_MEMORY_CLOCK_H
#define PERUN_MEMORY_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Without their CLOCK_TICK_SHIFT low bits, ticks have a resolution of about 50 to 100 microseconds. */
#if defined(__x86_64__)
#define CLOCK_TICK_SHIFT 18
static inline uint64_t clock_ticks(void) { return __builtin_ia32_rdtsc(); }
#else
#define CLOCK_TICK_SHIFT 16
static inline uint64_t clock_ticks(void) { return clock_nanoseconds(CLOCK_MONOTONIC); }
#endif

#endif
