#define _GNU_SOURCE
#include "reach.h"

#include <string.h>
#include <sys/uio.h>

#include "held.h"
#include "maps.h"
#include "stopped.h"
#include "system.h"

#define MOST_BYTES ((uint64_t)64 << 30) /* then the search is given up */
#define ARENA ((uintptr_t)64 << 20)     /* size and alignment of the heaps of further arenas of glibc */
#define RESERVED ((uint64_t)256 << 30)  /* mappings above this size are reserved addresses, as of sanitizers: no data */
#define PAGES 512                       /* looked up at a time */
#define PRESENT ((uint64_t)3 << 62)     /* of /proc/self/pagemap: in memory, or swapped out */
#define HELPER_STACK ((size_t)256 << 10)
#define HOLES (STOPPED_THREADS + 16)

static struct search {
  struct reach_block *blocks;
  uint32_t *waiting; /* numbers of blocks whose content is to be searched */
  size_t count, waiting_count; /* a block waits at most twice: once found possibly, once reachable */
  struct reach_range holes[HOLES]; /* by address; not searched */
  size_t hole_count;
  bool allocator_of_libc, copies, given_up;
  bool in_libc; /* what is searched now are the data of the C library */
  uint64_t searched; /* bytes */
  uint32_t found_by; /* state of what refers to what is found */
  unsigned unseen;
  int pages; /* /proc/self/pagemap; below 0 if it cannot be read */
} search;

/* -- blocks ------------------------------------------------------------------------------------------------- */

/* Sort by address: 16 bits at a time, from the lowest on. `other` has room for as many. */
static struct held *sorted(struct held *blocks, struct held *other, size_t count) {
  static uint32_t places[1 << 16];
  for (unsigned shift = 0; shift < 48; shift += 16) {
    uint32_t place = 0;
    memset(places, 0, sizeof places);
    for (size_t i = 0; i < count; i++) places[blocks[i].address >> shift & 0xffff]++;
    for (size_t digit = 0; digit < 1 << 16; digit++) {
      uint32_t more = places[digit];
      places[digit] = place;
      place += more;
    }
    for (size_t i = 0; i < count; i++) other[places[blocks[i].address >> shift & 0xffff]++] = blocks[i];
    struct held *swapped = blocks;
    blocks = other;
    other = swapped;
  }
  return blocks;
}

/* The number of the last block that starts at or before `address`; -1 if there is none. */
static ptrdiff_t before(uintptr_t address) {
  size_t low = 0, high = search.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (search.blocks[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return (ptrdiff_t)low - 1;
}

static struct reach_block *block_at(uintptr_t address) {
  if (!search.count || address < search.blocks[0].address) return NULL;
  struct reach_block *last = search.blocks + search.count - 1;
  if (address > last->address + last->size) return NULL;
  struct reach_block *block = search.blocks + before(address);
  return address == block->address || address < block->address + block->size ? block : NULL;
}

/* Copy memory, as much as can be read; returns the number of bytes. The kernel copies, so that memory that cannot be read
 * does no harm, unless it does not allow that. */
static size_t copy(void *to, uintptr_t from, size_t size) {
  struct iovec local = {to, size}, remote = {(void *)from, size};
  if (search.copies) {
    long got = syscall(SYS_process_vm_readv, system_pid(), &local, 1UL, &remote, 1UL, 0UL);
    return got < 0 ? 0 : (size_t)got;
  }
  memcpy(to, (const void *)from, size);
  return size;
}

static uint64_t word_at(uintptr_t address) {
  uint64_t word = 0;
  return copy(&word, address, sizeof word) == sizeof word ? word : 0;
}

/* Whether a pointer to the inside is that of an array of `new[]`, before whose objects is their number: the rule of
 * memcheck (`newarray`). */
static bool is_array(const struct reach_block *block, uintptr_t address) {
  if (address != block->address + sizeof(uint64_t) || block->size <= sizeof(uint64_t)) return false;
  uint64_t number = word_at(block->address);
  return number && (block->size - sizeof number) % number == 0;
}

/* Whether an address in the data of glibc is that of the free memory after a block, whose first word is in the block. */
static bool is_free_memory(const struct reach_block *block, uintptr_t address) {
  if (!search.in_libc || !search.allocator_of_libc) return false;
  uint64_t chunk = block->address - 2 * sizeof chunk, size = word_at(block->address - sizeof chunk) & ~(uint64_t)7;
  return address == chunk + size;
}

static void found(uintptr_t address) {
  struct reach_block *block = block_at(address);
  if (!block || (address != block->address && is_free_memory(block, address))) return;
  uint32_t state = search.found_by;
  if (state == RECORD_REACHABLE && address != block->address && !is_array(block, address))
    state = RECORD_POSSIBLY_LOST;
  if (state <= block->state) return;
  block->state = state;
  search.waiting[search.waiting_count++] = (uint32_t)(block - search.blocks);
}

/* -- memory ------------------------------------------------------------------------------------------------- */

/* Search the words from `start` to `end`. */
static void search_words(uintptr_t start, uintptr_t end) {
  static uint64_t words[4096];
  start = (start + sizeof *words - 1) & ~(sizeof *words - 1);
  while (start + sizeof *words <= end && !search.given_up) {
    size_t size = end - start < sizeof words ? (end - start) & ~(sizeof *words - 1) : sizeof words;
    size_t got = copy(words, start, size) & ~(sizeof *words - 1);
    if (!got) { /* go on with the next page */
      start = (start | 4095) + 1;
      continue;
    }
    for (size_t i = 0; i < got / sizeof *words; i++) found((uintptr_t)words[i]);
    start += got;
    search.searched += got;
    search.given_up = search.searched > MOST_BYTES;
  }
}

/* Search the content of blocks that were found, until no new one is. */
static void search_waiting(void) {
  while (search.waiting_count && !search.given_up) {
    struct reach_block *block = search.blocks + search.waiting[--search.waiting_count];
    search.found_by = block->state;
    search_words(block->address, block->address + block->size);
  }
}

/* Search a part of the program's memory without its blocks, which are searched only once they are found. */
static void search_between_blocks(uintptr_t start, uintptr_t end) {
  ptrdiff_t number = before(start);
  if (number >= 0 && start < search.blocks[number].address + search.blocks[number].size)
    start = search.blocks[number].address + search.blocks[number].size;
  for (number++; start < end; number++) {
    const struct reach_block *next = (size_t)number < search.count ? search.blocks + number : NULL;
    if (!next || next->address >= end) {
      search_words(start, end);
      return;
    }
    if (next->address > start) search_words(start, next->address);
    if (next->address + next->size > start) start = next->address + next->size;
  }
}

static void search_without_holes(uintptr_t start, uintptr_t end) {
  for (size_t i = 0; i < search.hole_count && start < end; i++) {
    const struct reach_range *hole = search.holes + i;
    if (hole->end <= start || hole->start >= end) continue;
    if (hole->start > start) search_between_blocks(start, hole->start);
    start = hole->end;
  }
  if (start < end) search_between_blocks(start, end);
}

/* Search the pages of a mapping that were ever used: large ones may be reserved, and reading would make their pages. */
static void search_used_pages(uintptr_t start, uintptr_t end) {
  static uint64_t pages[PAGES];
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  while (start < end && !search.given_up) {
    size_t count = (end - start) / page < PAGES ? (end - start) / page : PAGES;
    off_t at = (off_t)(start / page * sizeof *pages);
    bool known = syscall(SYS_pread64, search.pages, pages, count * sizeof *pages, at) == (long)(count * sizeof *pages);
    for (size_t i = 0, used; i < count; i = used + 1) {
      for (used = i; used < count && (!known || pages[used] & PRESENT); used++) continue;
      if (used > i) search_without_holes(start + i * page, start + used * page);
    }
    start += count * page;
  }
}

static void add_hole(uintptr_t start, uintptr_t end) {
  if (start >= end || search.hole_count == HOLES) return;
  size_t at = search.hole_count++;
  for (; at && search.holes[at - 1].start > start; at--) search.holes[at] = search.holes[at - 1];
  search.holes[at] = (struct reach_range){start, end};
}

/* What is below the top of a stack is left from calls that have returned. */
static bool add_free_stack(void *argument, const struct mapping *mapping) {
  uintptr_t top = *(const uintptr_t *)argument;
  if (mapping->start <= top && top < mapping->end) add_hole(mapping->start, top);
  return true;
}

/* -- the search --------------------------------------------------------------------------------------------- */

static bool is_device(const char *path) {
  return strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 && strcmp(path, "/dev/zero") != 0;
}

/* Whether a mapping is a part of an arena of glibc, which begins with the address of the arena. */
static bool is_arena(const struct mapping *mapping) {
  if (*mapping->path || mapping->start % ARENA || mapping->end - mapping->start > ARENA) return false;
  uint64_t arena = word_at(mapping->start);
  return arena && arena % ARENA < 128;
}

static bool is_libc(const char *path) {
  const char *name = strrchr(path, '/');
  return name && (strncmp(name, "/libc.so", 8) == 0 || strncmp(name, "/libc-2.", 8) == 0);
}

static bool search_mapping(void *nothing, const struct mapping *mapping) {
  (void)nothing;
  if (!mapping->writable || is_device(mapping->path) || mapping->end - mapping->start > RESERVED) return true;
  if (search.allocator_of_libc && (strcmp(mapping->path, "[heap]") == 0 || is_arena(mapping))) return true;
  search.in_libc = is_libc(mapping->path);
  search_used_pages(mapping->start, mapping->end);
  search.in_libc = false;
  return !search.given_up;
}

/* Among the blocks that are not reached, those to which no other one refers are lost, the others indirectly. */
static void search_lost(void) {
  for (size_t i = 0; i < search.count && !search.given_up; i++) {
    if (search.blocks[i].state != RECORD_LOST) continue;
    search.found_by = RECORD_INDIRECTLY_LOST;
    search_words(search.blocks[i].address, search.blocks[i].address + search.blocks[i].size);
    search_waiting();
    search.blocks[i].state = RECORD_LOST; /* though it may be one of a cycle */
  }
}

static void search_all(const struct stopped *threads, size_t count, unsigned unseen) {
  static struct maps_buffer buffer;
  uint64_t probe = 1, copied = 0;
  search.copies = true;
  search.copies = copy(&copied, (uintptr_t)&probe, sizeof probe) == sizeof probe;
  search.waiting_count = 0;
  search.unseen = unseen;
  for (size_t i = 0; i < count; i++) {
    uintptr_t top = threads[i].stack;
    if (top) maps_read(&buffer, add_free_stack, &top);
  }
  search.found_by = RECORD_REACHABLE;
  for (size_t i = 0; i < count; i++)
    for (size_t word = 0; word < threads[i].register_count; word++) found((uintptr_t)threads[i].registers[word]);
  search.pages = system_open("/proc/self/pagemap", O_RDONLY, 0);
  maps_read(&buffer, search_mapping, NULL);
  if (search.pages >= 0) system_close(search.pages);
  search_waiting();
  search_lost();
}

static size_t pages_of(size_t size) { return (size + 4095) & ~(size_t)4095; }

static __attribute__((noinline)) void search_from_here(bool allocator_of_libc, const struct reach_range *ranges,
                                                       size_t range_count, void (*done)(const struct reach_result *)) {
  static struct maps_buffer buffer;
  static struct stopped threads[STOPPED_THREADS];
  uintptr_t top = (uintptr_t)__builtin_frame_address(0);
  size_t table_size, count, size, whole;
  held_take();
  const void *table = held_pages(&table_size);
  count = held_count();
  size = pages_of((count + 1) * (2 * sizeof(struct held) + sizeof(struct reach_block) + 2 * sizeof(uint32_t)));
  whole = size + HELPER_STACK;
  char *pages = pages_make(whole);
  if (pages && !held_is_incomplete() && count < UINT32_MAX) {
    struct held *held = (struct held *)(pages + HELPER_STACK);
    memset(&search, 0, sizeof search);
    search.blocks = (struct reach_block *)(held + 2 * (count + 1));
    search.waiting = (uint32_t *)(search.blocks + count + 1);
    search.count = held_copy(held);
    search.allocator_of_libc = allocator_of_libc;
    held = sorted(held, held + count + 1, search.count);
    for (size_t i = 0; i < search.count; i++)
      search.blocks[i] = (struct reach_block){held[i].address, held[i].size, RECORD_LOST};
    for (size_t i = 0; i < range_count; i++) add_hole(ranges[i].start, ranges[i].end);
    add_hole((uintptr_t)pages, (uintptr_t)pages + whole);
    add_hole((uintptr_t)table, (uintptr_t)table + table_size);
    maps_read(&buffer, add_free_stack, &top);
    with_threads_stopped(threads, pages, HELPER_STACK, search_all);
    struct reach_result result = {search.blocks, search.count, search.unseen, !search.given_up};
    done(&result);
  } else {
    struct reach_result nothing = {NULL, 0, 0, false};
    done(&nothing);
  }
  pages_release(pages, pages ? whole : 0);
  held_give();
}

void reach_search(bool allocator_of_libc, const struct reach_range *ranges, size_t range_count,
                  void (*done)(const struct reach_result *)) {
  __builtin_unwind_init(); /* the registers of the callers are in this frame, which is searched */
  search_from_here(allocator_of_libc, ranges, range_count, done);
  __asm__ volatile("" ::: "memory"); /* no tail call: the frame must stay */
}
