/* In the place of `clock.h` of the runtime: each basic block that the program executes takes a microsecond. So
 * the durations of calls are the same in each run, whatever else the machine does. The program is compiled with
 * `-fsanitize-coverage=trace-pc`, which calls the function below from each block. */
#ifndef PERUN_COMPLEXITY_CLOCK_H
#define PERUN_COMPLEXITY_CLOCK_H
#define _GNU_SOURCE /* as the sources say before their first header, which is this one now */

#include <stdbool.h>
#include <stdint.h>

__attribute__((weak, visibility("default"))) uint64_t executed_blocks;

__attribute__((weak, visibility("default"))) void __sanitizer_cov_trace_pc(void) { executed_blocks++; }

static inline uint64_t clock_nanoseconds(void) { return executed_blocks * 1000; }
static inline bool clock_is_invariant(void) { return false; }
static inline uint64_t clock_counter(void) { return clock_nanoseconds(); }

extern bool clock_is_counter;

static inline uint64_t clock_ticks(void) { return clock_nanoseconds(); }

#endif
