#include "live.h"

#include <stdlib.h>

#define FIRST_BITS 10

static size_t slot_of(const struct live *live, int64_t address) {
  return (size_t)(((uint64_t)address * 0x9e3779b97f4a7c15u) >> (64 - live->bits));
}

static size_t mask(const struct live *live) { return ((size_t)1 << live->bits) - 1; }

bool live_make(struct live *live) {
  live->bits = FIRST_BITS;
  live->count = 0;
  live->slots = calloc((size_t)1 << live->bits, sizeof *live->slots);
  return live->slots;
}

void live_release(struct live *live) { free(live->slots); }

bool live_grow(struct live *live) {
  if (live->count < (mask(live) + 1) / 8 * 5) return true;
  struct live larger = {NULL, live->bits + 1, live->count};
  larger.slots = calloc((size_t)1 << larger.bits, sizeof *larger.slots);
  if (!larger.slots) return false;
  for (size_t i = 0; i <= mask(live); i++)
    if (live->slots[i].row) *live_find(&larger, live->slots[i].address) = live->slots[i];
  free(live->slots);
  *live = larger;
  return true;
}

struct block *live_find(const struct live *live, int64_t address) {
  size_t at = slot_of(live, address);
  while (live->slots[at].row && live->slots[at].address != address) at = (at + 1) & mask(live);
  return live->slots + at;
}

void live_prefetch(const struct live *live, int64_t address) {
  __builtin_prefetch(live->slots + slot_of(live, address));
}

void live_remove(struct live *live, struct block *block) {
  size_t hole = (size_t)(block - live->slots);
  /* Move blocks back that had to pass the hole, so that a search never meets a free slot too early. */
  for (size_t at = (hole + 1) & mask(live); live->slots[at].row; at = (at + 1) & mask(live)) {
    size_t distance = (at - slot_of(live, live->slots[at].address)) & mask(live);
    if (distance < ((at - hole) & mask(live))) continue;
    live->slots[hole] = live->slots[at];
    hole = at;
  }
  live->slots[hole].row = 0;
  live->count--;
}
