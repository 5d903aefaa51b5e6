/* The table of what to record, and what it says of each place that calls a hook. */
#ifndef PERUN_COMPLEXITY_TABLE_H
#define PERUN_COMPLEXITY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* A place in the program that calls the hook at the entry of a function. */
struct site {
  uint64_t place; /* the address to which the hook returns; 0 for an empty slot */
  uint64_t plain; /* the same address if every call is recorded, without a size; else 0 */
  const struct table_program *program; /* how to read the size; NULL for no size */
  uint32_t id;
  uint32_t sampling;
  bool is_recorded;
  bool is_inlined; /* the function is inlined in another one, whose frame it has */
};

/* Read the table that the environment names. */
void table_read(void);

/* Discard what is known of functions, in a forked child. */
void table_reset(void);

/* Fill a large array with zeros by discarding its pages, so that unused parts of it need no memory. */
#define DISCARDABLE_UNIT 65536 /* a multiple of every page size */
#define DISCARDABLE __attribute__((aligned(DISCARDABLE_UNIT)))
void table_clear(void *array, size_t size);

/* Fill in a site at its first call: whether and how calls of `function` from `site->place` are recorded. */
void table_look_up(struct site *site, uint64_t function);

/* The registers of x86-64 that a called function preserves, as they are in the entered function. */
struct registers {
  uint64_t rbx, rbp, r12, r13, r14, r15;
};

/* The size that a program reads; -1 if it cannot be read. `known` is a cache of readable pages. */
#define READABLE_PAGES 512u
int64_t table_size(const struct table_program *program, const struct registers *registers, uint64_t *known);

#endif
