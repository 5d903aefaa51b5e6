#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../native/record.h"
#include "analysis.h"

enum { SITE_STACK, SITE, AMOUNT, BACK, FRESH, THREAD, TIME }; /* the order of record_chunk.width */

struct reader {
  const uint8_t *at, *end;
};

/* The next `count` values of `width` bytes, which are stored as planes of bytes; false if there are not so many. */
static bool read_values(struct reader *reader, int64_t count, unsigned width, int64_t *values) {
  if ((uint64_t)(reader->end - reader->at) < (uint64_t)count * width) return false;
  for (int64_t i = 0; i < count; i++) values[i] = 0;
  for (unsigned plane = 0; plane < width; plane++, reader->at += count)
    for (int64_t i = 0; i < count; i++)
      values[i] = (int64_t)((uint64_t)values[i] | (uint64_t)reader->at[i] << (8 * plane));
  return true;
}

static bool read_sites(struct reader *reader, const struct decode_chunk *chunk, const struct decode_columns *to) {
  if (reader->end - reader->at < chunk->sites) return false;
  for (int64_t i = 0; i < chunk->sites; i++) to->subtypes[i] = *reader->at++;
  return read_values(reader, chunk->sites, chunk->width[SITE_STACK], to->stack_ids);
}

/* The site of each event, and whether it releases. */
static bool read_events(struct reader *reader, const struct decode_chunk *chunk, const struct decode_columns *to) {
  if (!read_values(reader, chunk->events, chunk->width[SITE], to->site)) return false;
  int64_t allocating = 0;
  for (int64_t i = 0; i < chunk->events; i++) {
    if ((uint64_t)to->site[i] >= (uint64_t)chunk->sites) return false;
    to->releases[i] = to->subtypes[to->site[i]] >= RECORD_FREE;
    allocating += !to->releases[i];
  }
  return allocating == chunk->amounts;
}

/* The amounts are ordered by site, within a site by event. `starts` has room for one more than the sites. */
static bool read_amounts(struct reader *reader, const struct decode_chunk *chunk, const struct decode_columns *to,
                         int64_t *values, int64_t *starts) {
  if (!read_values(reader, chunk->amounts, chunk->width[AMOUNT], values)) return false;
  for (int64_t site = 0; site <= chunk->sites; site++) starts[site] = 0;
  for (int64_t i = 0; i < chunk->events; i++)
    if (!to->releases[i]) starts[to->site[i] + 1]++;
  for (int64_t site = 0; site < chunk->sites; site++) starts[site + 1] += starts[site];
  int64_t any = 0;
  for (int64_t i = 0; i < chunk->events; i++)
    any |= to->size[i] = to->releases[i] ? 0 : values[starts[to->site[i]]++];
  return any >= 0; /* else one is larger than 2^63 bytes */
}

/* An address is that of an event before, or a new one. Both columns have first the allocations, then the releases. */
static bool read_addresses(struct reader *reader, const struct decode_chunk *chunk, const struct decode_columns *to,
                           int64_t *back, int64_t *fresh) {
  if (!read_values(reader, chunk->events, chunk->width[BACK], back)) return false;
  if (!read_values(reader, chunk->fresh, chunk->width[FRESH], fresh)) return false;
  uint64_t address = 0;
  int64_t used = 0;
  for (int releases = 0; releases < 2; releases++) /* the new ones */
    for (int64_t i = 0, at = releases ? chunk->amounts : 0; i < chunk->events; i++) {
      if (to->releases[i] != releases || back[at++]) continue;
      if (used == chunk->fresh) return false;
      uint64_t zigzag = (uint64_t)fresh[used++];
      address += ((zigzag >> 1) ^ (0 - (zigzag & 1))) << chunk->address_shift;
      to->address[i] = (int64_t)address;
    }
  if (used != chunk->fresh) return false;
  int64_t at[2] = {0, chunk->amounts};
  for (int64_t i = 0; i < chunk->events; i++) {
    int64_t distance = back[at[to->releases[i]]++];
    if (distance < 0 || distance > i) return false;
    if (distance) to->address[i] = to->address[i - distance];
  }
  return true;
}

static int64_t time_of(const struct decode_chunk *chunk, uint64_t ticks) {
  double share = (double)(int64_t)(ticks - (uint64_t)chunk->before) / (double)chunk->span;
  share = share < 0 ? 0 : share > 1 ? 1 : share;
  return chunk->origin + llrint(share * (double)chunk->passed);
}

static bool read_times(struct reader *reader, const struct decode_chunk *chunk, const struct decode_columns *to) {
  if (!read_values(reader, chunk->events, chunk->width[THREAD], to->thread)) return false;
  if (!read_values(reader, chunk->events, chunk->width[TIME], to->time)) return false;
  uint64_t ticks = (uint64_t)chunk->first_ticks;
  int64_t time = time_of(chunk, ticks << chunk->tick_shift);
  for (int64_t i = 0; i < chunk->events; i++) {
    to->thread[i] = (int64_t)((uint64_t)to->thread[i] + (uint64_t)chunk->thread);
    if (to->time[i]) { /* most events have the tick of the one before, as ticks lack their low bits */
      ticks += (uint64_t)to->time[i];
      time = time_of(chunk, ticks << chunk->tick_shift);
    }
    to->time[i] = time;
  }
  return true;
}

int decode(const uint8_t *data, int64_t length, const struct decode_chunk *chunk, const struct decode_columns *to) {
  struct reader reader = {data, data + length};
  int64_t most = chunk->sites + 1 > chunk->fresh ? chunk->sites + 1 : chunk->fresh;
  int64_t most_values = chunk->amounts > chunk->events ? chunk->amounts : chunk->events;
  int64_t *values = calloc((size_t)(most_values + most), sizeof *values);
  if (!values) return false;
  int64_t *others = values + most_values;
  bool right = read_sites(&reader, chunk, to) && read_events(&reader, chunk, to) &&
               read_amounts(&reader, chunk, to, values, others) &&
               read_addresses(&reader, chunk, to, values, others) && read_times(&reader, chunk, to) &&
               reader.at == reader.end;
  free(values);
  return right;
}
