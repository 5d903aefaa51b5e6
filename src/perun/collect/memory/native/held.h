/* The blocks that the program holds now, for the search of leaks at its end (reach.h). Memory is that of the kernel. */
#ifndef PERUN_MEMORY_HELD_H
#define PERUN_MEMORY_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* Pages of this process, which hold nothing of the program. NULL without memory. */
void *pages_make(size_t size);
void pages_release(void *, size_t size);

struct held {
  uintptr_t address; /* 0 for a free slot of the table */
  uint64_t size;
};

/* Keep up with an event of the program. */
void held_event(enum record_kind, uintptr_t address, uint64_t amount);

/* Whether an event could not be kept, for want of memory. */
bool held_is_incomplete(void);

/* Stop other threads from changing the table, until it is given back. */
void held_take(void);
void held_give(void);

/* Copy all blocks; returns their number. `to` has room for `held_count` ones. */
size_t held_count(void);
size_t held_copy(struct held *to);

/* The pages of the table. */
const void *held_pages(size_t *size);

/* Forget all blocks, in a forked child. */
void held_forget(void);

#endif
