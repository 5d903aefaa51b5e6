#define _GNU_SOURCE
#include "held.h"

#include <string.h>
#include <sys/mman.h>

#include "system.h"

#define FIRST_BITS 12

static lock_t lock;
static struct held *slots;
static unsigned bits; /* of the number of slots */
static size_t count;
static bool incomplete;

static __thread uint64_t resized __attribute__((tls_model("initial-exec"))); /* size of the block that realloc takes */

void *pages_make(size_t size) {
  void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? NULL : made;
}

void pages_release(void *pages, size_t size) {
  if (pages) munmap(pages, size);
}

static size_t size_of(unsigned some_bits) { return sizeof *slots << some_bits; }

static size_t slot_of(uintptr_t address) {
  return (size_t)(((uint64_t)address * 0x9e3779b97f4a7c15u) >> (64 - bits));
}

static size_t mask(void) { return ((size_t)1 << bits) - 1; }

static struct held *find(uintptr_t address) {
  size_t at = slot_of(address);
  while (slots[at].address && slots[at].address != address) at = (at + 1) & mask();
  return slots + at;
}

static bool grow(void) {
  if (slots && count < (mask() + 1) / 8 * 5) return true;
  struct held *old = slots;
  unsigned old_bits = bits, new_bits = old ? bits + 1 : FIRST_BITS;
  struct held *made = pages_make(size_of(new_bits));
  if (!made) return false;
  slots = made;
  bits = new_bits;
  for (size_t i = 0; old && i < (size_t)1 << old_bits; i++)
    if (old[i].address) *find(old[i].address) = old[i];
  pages_release(old, old ? size_of(old_bits) : 0);
  return true;
}

static void add(uintptr_t address, uint64_t size) {
  if (!grow()) {
    incomplete = true;
    return;
  }
  struct held *held = find(address);
  if (!held->address) count++;
  *held = (struct held){address, size};
}

/* Remove a block, and move those back that had to pass its slot. Returns its size. */
static uint64_t take(uintptr_t address) {
  struct held *held = slots ? find(address) : NULL;
  if (!held || !held->address) return 0;
  uint64_t size = held->size;
  size_t hole = (size_t)(held - slots);
  for (size_t at = (hole + 1) & mask(); slots[at].address; at = (at + 1) & mask()) {
    if (((at - slot_of(slots[at].address)) & mask()) < ((at - hole) & mask())) continue;
    slots[hole] = slots[at];
    hole = at;
  }
  slots[hole].address = 0;
  count--;
  return size;
}

void held_event(enum record_kind kind, uintptr_t address, uint64_t amount) {
  lock_take(&lock);
  if (kind < RECORD_FREE)
    add(address, amount);
  else if (kind == RECORD_REALLOC_FAILED)
    add(address, resized);
  else
    resized = take(address);
  lock_release(&lock);
}

bool held_is_incomplete(void) { return incomplete; }

void held_take(void) { lock_take(&lock); }

void held_give(void) { lock_release(&lock); }

size_t held_count(void) { return count; }

size_t held_copy(struct held *to) {
  size_t copied = 0;
  for (size_t i = 0; slots && i <= mask(); i++)
    if (slots[i].address) to[copied++] = slots[i];
  return copied;
}

const void *held_pages(size_t *size) {
  *size = slots ? size_of(bits) : 0;
  return slots;
}

void held_forget(void) {
  lock = 0;
  pages_release(slots, slots ? size_of(bits) : 0);
  slots = NULL;
  count = bits = 0;
  incomplete = true; /* what the parent holds is unknown here, and may refer to blocks of this process */
}
