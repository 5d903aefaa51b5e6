#include "chunk.h"

#include <stdbool.h>
#include <string.h>

enum { SITE_STACK, SITE, AMOUNT, BACK, FRESH, THREAD, TIME }; /* the order of record_chunk.width */

static bool allocates(const struct record_event *event) { return event->kind < RECORD_FREE; }

static uint32_t slot_of(uint64_t key) { return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40) % CHUNK_TABLE; }

/* -- columns ------------------------------------------------------------------------------------------------ */

/* Append `count` of `packer->values` as planes, and compress them; the first `apart` of each plane separately, because
 * values of another kind have other codes. Returns their width. */
static uint8_t add_values_apart(struct packer *packer, size_t *at, uint32_t count, uint32_t apart) {
  uint64_t any = 0;
  for (uint32_t i = 0; i < count; i++) any |= packer->values[i];
  uint8_t width = any ? (uint8_t)((71 - __builtin_clzll(any)) / 8) : 0;
  for (unsigned plane = 0; plane < width; plane++) {
    uint8_t *out = packer->unpacked + *at;
    for (uint32_t i = 0; i < count; i++) out[i] = (uint8_t)(packer->values[i] >> (8 * plane));
    deflate_add(&packer->deflate, packer->unpacked, *at, *at + apart);
    deflate_add(&packer->deflate, packer->unpacked, *at + apart, *at + count);
    *at += count;
  }
  return width;
}

static uint8_t add_values(struct packer *packer, size_t *at, uint32_t count) {
  return add_values_apart(packer, at, count, 0);
}

static void add_bytes(struct packer *packer, size_t *at, size_t size) {
  deflate_add(&packer->deflate, packer->unpacked, *at, *at + size);
  *at += size;
}

/* Append definitions: their first words as planes, then all other words. Returns the number of definitions. */
static uint32_t add_definitions(struct packer *packer, size_t *at, const uint64_t *words, uint32_t count) {
  uint32_t definitions = 0, others = 0;
  for (uint32_t i = 0; i < count; i += 1 + (words[i] >> 48 & 0xfff)) packer->values[definitions++] = words[i];
  uint8_t *first = packer->unpacked + *at, *rest = first + 8 * (size_t)definitions;
  for (uint32_t plane = 0; plane < 8; plane++)
    for (uint32_t i = 0; i < definitions; i++)
      first[plane * definitions + i] = (uint8_t)(packer->values[i] >> (8 * plane));
  for (uint32_t i = 0; i < count;) {
    uint32_t more = words[i++] >> 48 & 0xfff;
    memcpy(rest + 8 * (size_t)others, words + i, 8 * (size_t)more);
    others += more;
    i += more;
  }
  add_bytes(packer, at, 8 * (size_t)definitions);
  add_bytes(packer, at, 8 * (size_t)others);
  return definitions;
}

/* Number the pairs of kind and stack in their order; `packer->sites` gets the number of each event. */
static uint32_t find_sites(struct packer *packer, const struct record_event *events, uint32_t count) {
  uint32_t sites = 0;
  memset(packer->table, 0, sizeof packer->table);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t key = (uint64_t)events[i].stack << 8 | events[i].kind;
    uint32_t slot = slot_of(key);
    while (packer->table[slot] && packer->site_keys[packer->table[slot] - 1] != key)
      slot = (slot + 1) % CHUNK_TABLE;
    if (!packer->table[slot]) {
      packer->site_keys[sites++] = key;
      packer->table[slot] = (uint16_t)sites;
    }
    packer->sites[i] = (uint16_t)(packer->table[slot] - 1);
  }
  return sites;
}

/* Put the amounts of allocations into `packer->values`, ordered by site; returns their number. */
static uint32_t sort_amounts(struct packer *packer, const struct record_event *events, uint32_t count,
                             uint32_t sites) {
  uint32_t *starts = packer->site_starts, amounts = 0;
  memset(starts, 0, (sites + 1) * sizeof *starts);
  for (uint32_t i = 0; i < count; i++)
    if (allocates(events + i)) starts[packer->sites[i] + 1]++;
  for (uint32_t site = 0; site < sites; site++) starts[site + 1] += starts[site];
  amounts = starts[sites];
  for (uint32_t i = 0; i < count; i++)
    if (allocates(events + i)) packer->values[starts[packer->sites[i]]++] = events[i].amount;
  return amounts;
}

static void reverse(uint64_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; i++) {
    uint64_t value = values[i];
    values[i] = values[count - 1 - i];
    values[count - 1 - i] = value;
  }
}

/* For each event the number of events since its address came before, or 0 for a fresh address: first of the `amounts`
 * allocations, then of releases. The fresh addresses go to `fresh` in the same order, as differences; it has room for
 * CHUNK_EVENTS. Returns their number. */
static uint32_t find_addresses(struct packer *packer, const struct record_event *events, uint32_t count,
                               uint32_t amounts, uint64_t *fresh) {
  uint32_t allocations = 0, releases = amounts, found = 0, released = CHUNK_EVENTS;
  memset(packer->table, 0, sizeof packer->table);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t address = events[i].address;
    bool new = allocates(events + i);
    uint32_t slot = slot_of(address), *at = new ? &allocations : &releases;
    while (packer->table[slot] && events[packer->table[slot] - 1].address != address)
      slot = (slot + 1) % CHUNK_TABLE;
    uint32_t before = packer->table[slot];
    packer->values[(*at)++] = before ? i + 1 - before : 0;
    packer->table[slot] = (uint16_t)(i + 1);
    if (before) continue;
    if (new)
      fresh[found++] = address;
    else
      fresh[--released] = address;
  }
  reverse(fresh + released, CHUNK_EVENTS - released);
  memmove(fresh + found, fresh + released, (CHUNK_EVENTS - released) * sizeof *fresh);
  found += CHUNK_EVENTS - released;
  for (uint32_t i = found; i > 1; i--) fresh[i - 1] -= fresh[i - 2];
  return found;
}

/* Remove the low bits that are 0 in all differences, and fold the signs (zigzag); returns the number of bits. */
static uint8_t fold_signs(uint64_t *values, uint32_t count) {
  uint64_t any = 0;
  for (uint32_t i = 0; i < count; i++) any |= values[i];
  uint8_t shift = any ? (uint8_t)__builtin_ctzll(any) : 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t negative = -(values[i] >> 63), value = values[i] >> shift | (shift ? negative << (64 - shift) : 0);
    values[i] = value << 1 ^ negative;
  }
  return shift;
}

/* -- chunks ------------------------------------------------------------------------------------------------- */

static size_t finish(struct packer *packer, struct record_chunk *header, size_t unpacked) {
  size_t size = (size_t)(deflate_end(&packer->deflate) - packer->packed);
  memcpy(header->magic, RECORD_CHUNK_MAGIC, sizeof header->magic);
  header->unpacked = (uint32_t)unpacked;
  header->packed = (uint32_t)(size - sizeof *header);
  memcpy(packer->packed, header, sizeof *header);
  size_t start = offsetof(struct record_chunk, kind);
  uint32_t crc = crc32_of(0, packer->packed + start, size - start);
  memcpy(packer->packed + offsetof(struct record_chunk, crc), &crc, sizeof crc);
  return size;
}

static void start(struct packer *packer) {
  deflate_start(&packer->deflate, packer->packed + sizeof(struct record_chunk),
                sizeof packer->packed - sizeof(struct record_chunk));
}

size_t chunk_pack(struct packer *packer, struct record_chunk header, const uint64_t *words, uint32_t word_count,
                  const struct record_event *events, uint32_t event_count, unsigned tick_shift) {
  size_t at = 0;
  uint64_t *values = packer->values;
  header.kind = RECORD_EVENTS;
  header.words = word_count;
  header.events = event_count;
  start(packer);
  header.definitions = add_definitions(packer, &at, words, word_count);

  header.sites = find_sites(packer, events, event_count);
  for (uint32_t i = 0; i < header.sites; i++) packer->unpacked[at + i] = (uint8_t)packer->site_keys[i];
  add_bytes(packer, &at, header.sites);
  for (uint32_t i = 0; i < header.sites; i++) values[i] = packer->site_keys[i] >> 8;
  header.width[SITE_STACK] = add_values(packer, &at, header.sites);
  for (uint32_t i = 0; i < event_count; i++) values[i] = packer->sites[i];
  header.width[SITE] = add_values(packer, &at, event_count);

  header.amounts = sort_amounts(packer, events, event_count, header.sites);
  header.width[AMOUNT] = add_values(packer, &at, header.amounts);

  uint64_t *fresh = packer->site_keys; /* no longer needed */
  header.fresh = find_addresses(packer, events, event_count, header.amounts, fresh);
  header.width[BACK] = add_values_apart(packer, &at, event_count, header.amounts);
  header.address_shift = fold_signs(fresh, header.fresh);
  memcpy(values, fresh, header.fresh * sizeof *fresh);
  header.width[FRESH] = add_values(packer, &at, header.fresh);

  header.thread = event_count ? events[0].thread : 0;
  for (uint32_t i = 0; i < event_count; i++)
    if (events[i].thread < header.thread) header.thread = events[i].thread;
  for (uint32_t i = 0; i < event_count; i++) values[i] = events[i].thread - header.thread;
  header.width[THREAD] = add_values(packer, &at, event_count);

  header.first_ticks = event_count ? events[0].ticks : 0;
  uint64_t before = header.first_ticks >> tick_shift;
  for (uint32_t i = 0; i < event_count; i++) {
    uint64_t now = events[i].ticks >> tick_shift;
    values[i] = now - before;
    before = now;
  }
  header.width[TIME] = add_values(packer, &at, event_count);
  return finish(packer, &header, at);
}

size_t chunk_pack_text(struct packer *packer, const char *text, size_t size) {
  struct record_chunk header = {.kind = RECORD_TEXT};
  size_t at = 0;
  start(packer);
  memcpy(packer->unpacked, text, size);
  add_bytes(packer, &at, size);
  return finish(packer, &header, at);
}

size_t chunk_pack_reach(struct packer *packer, const struct reach_block *blocks, uint32_t count,
                        unsigned unseen_threads, bool complete) {
  struct record_chunk header = {.kind = RECORD_REACH, .events = count, .sites = unseen_threads, .fresh = !complete};
  size_t at = 0;
  start(packer);
  for (uint32_t i = 0; i < count; i++)
    packer->values[i] = (blocks[i].address - (i ? blocks[i - 1].address : 0)) << 2 | blocks[i].state;
  header.width[0] = add_values(packer, &at, count);
  return finish(packer, &header, at);
}
