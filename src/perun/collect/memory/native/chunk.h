/* Packs definitions and events into the columns of a chunk (see record.h). */
#ifndef PERUN_MEMORY_CHUNK_H
#define PERUN_MEMORY_CHUNK_H

#include <stddef.h>

#include "deflate.h"
#include "reach.h"
#include "record.h"

#define CHUNK_EVENTS 32768 /* most events of a chunk */
#define CHUNK_WORDS 16384  /* most definition words of a chunk */
#define CHUNK_TABLE (2 * CHUNK_EVENTS)

/* Columns are at most 33 bytes per event and 5 per site, of which there is at most one per event. */
#define CHUNK_UNPACKED (8 * CHUNK_WORDS + 40 * CHUNK_EVENTS)
#define CHUNK_PACKED (sizeof(struct record_chunk) + 2 * CHUNK_UNPACKED + 32768)

/* All memory that packing needs; must be zeroed once. */
struct packer {
  struct deflate deflate;
  uint64_t values[CHUNK_EVENTS];
  uint64_t site_keys[CHUNK_EVENTS];
  uint32_t site_starts[CHUNK_EVENTS + 1];
  uint16_t sites[CHUNK_EVENTS];
  uint16_t table[CHUNK_TABLE]; /* hash table of sites, then of addresses: index + 1, 0 for an empty slot */
  uint8_t unpacked[CHUNK_UNPACKED];
  uint8_t packed[CHUNK_PACKED];
};

/* Pack a chunk into `packer->packed`; returns its number of bytes, including the header. `number`, `ticks` and
 * `monotonic` are taken from `header`. */
size_t chunk_pack(struct packer *, struct record_chunk header, const uint64_t *words, uint32_t word_count,
                  const struct record_event *events, uint32_t event_count, unsigned tick_shift);

/* The same for blocks of a search that was `complete` or not; at most CHUNK_EVENTS ones. */
size_t chunk_pack_reach(struct packer *, const struct reach_block *blocks, uint32_t count, unsigned unseen_threads,
                        bool complete);

/* The same for a text of at most CHUNK_UNPACKED bytes. */
size_t chunk_pack_text(struct packer *, const char *text, size_t size);

#endif
