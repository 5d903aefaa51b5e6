/* The live blocks: a hash table by address, with open addressing. */
#ifndef PERUN_MEMORY_LIVE_H
#define PERUN_MEMORY_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
  int64_t address, size, time;
  uint32_t row;    /* number of its row + 1; 0 for a free slot */
  uint32_t thread; /* number of the thread that allocated it */
};

struct live {
  struct block *slots;
  unsigned bits; /* of the number of slots */
  size_t count;
};

bool live_make(struct live *);
void live_release(struct live *);

/* Make sure that there is room for one more block; false without memory. */
bool live_grow(struct live *);

/* The slot of the block at an address, or the free one where it belongs. */
struct block *live_find(const struct live *, int64_t address);

/* Fetch the slot of an address into the cache. */
void live_prefetch(const struct live *, int64_t address);

/* Remove the block of a slot; blocks may move to other slots. */
void live_remove(struct live *, struct block *);

#endif
