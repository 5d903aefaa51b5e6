/* Tells which blocks the program can still reach at its end: those that a pointer refers to in its data, the stacks and
 * registers of its threads, or in a block that it can reach. It is a conservative search as that of valgrind's memcheck,
 * whose terms it has: any word that looks like an address is one. */
#ifndef PERUN_MEMORY_REACH_H
#define PERUN_MEMORY_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct reach_block {
  uintptr_t address;
  uint64_t size;
  uint32_t state; /* enum record_reach */
};

struct reach_result {
  const struct reach_block *blocks; /* by address */
  size_t count;
  unsigned unseen_threads; /* threads whose registers could not be read, and that were not stopped */
  bool complete;           /* false if it was given up */
};

/* Memory that is not of the program: of the recorder. */
struct reach_range {
  uintptr_t start, end;
};

/* Search, and hand the result to `done`. Other threads stand still meanwhile. `allocator_of_libc`: malloc is that of the
 * C library, whose free memory is known. `ranges` are what to leave out. */
void reach_search(bool allocator_of_libc, const struct reach_range *ranges, size_t range_count,
                  void (*done)(const struct reach_result *));

#endif
