/* Ticks of the cheapest clock of the processor that runs evenly and is the same on all cores. */
#ifndef PERUN_COMPLEXITY_CLOCK_H
#define PERUN_COMPLEXITY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool clock_is_invariant(void) {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}

static inline uint64_t clock_counter(void) { return __builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
static inline bool clock_is_invariant(void) { return true; }

static inline uint64_t clock_counter(void) {
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#else
static inline bool clock_is_invariant(void) { return false; }

static inline uint64_t clock_counter(void) { return clock_nanoseconds(); }
#endif

/* Set once, before anything is recorded. */
extern bool clock_is_counter;

static inline uint64_t clock_ticks(void) {
  return __builtin_expect(clock_is_counter, 1) ? clock_counter() : clock_nanoseconds();
}

#endif
