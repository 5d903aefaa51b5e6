/* The table of what to record, and what is known of the places where hooks are called. */
#ifndef PERUN_COMPLEXITY_TABLE_H
#define PERUN_COMPLEXITY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* A place in the program where a hook is called as a function is entered. */
struct site {
  uint64_t place; /* the address that the hook returns to; 0 where there is no site yet */
  uint64_t plain; /* the same where every call is recorded, without a size; else 0 */
  const struct table_program *program; /* NULL where the size is not known */
  uint32_t id;
  uint32_t sampling;
  bool is_recorded;
  bool is_inlined; /* in another function, whose frame it has */
};

/* Read the table that the environment names. */
void table_read(void);

/* Forget what is known of places, in a child that was forked. */
void table_forget(void);

/* Fill a large array with zeros, of which most are there already: that should not need memory for all of it. */
#define FORGETTABLE_UNIT 65536 /* whole pages, however large */
#define FORGETTABLE __attribute__((aligned(FORGETTABLE_UNIT)))
void table_empty(void *array, size_t size);

/* What is found out of a place that is seen for the first time. */
void table_look_up(struct site *site, uint64_t function);

/* Registers of the function that is entered which calls leave as they are: those of x86-64. */
struct registers {
  uint64_t rbx, rbp, r12, r13, r14, r15;
};

/* The size that a program reads; -1 where it cannot be read. `known` are pages of memory that is readable. */
#define KNOWN_PAGES 512u
int64_t table_size(const struct table_program *program, const struct registers *registers, uint64_t *known);

#endif
