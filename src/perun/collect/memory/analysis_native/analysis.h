/* The functions that `native.py` calls. They are the same as those of `analysis.py` and `records.py`, whose docstrings say
 * what they do. */
#ifndef PERUN_MEMORY_ANALYSIS_H
#define PERUN_MEMORY_ANALYSIS_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* -- chunks of recordings ----------------------------------------------------------------------------------- */

/* The columns of a chunk; see `struct record_chunk` in `native/record.h`. */
struct decode_chunk {
  int64_t events, sites, amounts, fresh;
  int64_t first_ticks; /* without its low bits */
  int64_t thread;
  /* The clocks: a tick `before` is `origin` nanoseconds after the start, and `span` ticks, at least 1, are `passed`
   * nanoseconds. */
  int64_t before, span, origin, passed;
  uint8_t width[7];
  uint8_t address_shift, tick_shift;
};

/* The columns of `Events`; those of sites have `sites` values, the others `events`. */
struct decode_columns {
  int64_t *stack_ids, *subtypes;
  int64_t *site;
  uint8_t *releases;
  int64_t *address, *size, *thread, *time;
};

/* Decode the `length` bytes at `data`, which follow the definitions of a chunk. Returns whether they are as they should
 * be; if not, what is in the columns does not matter. */
EXPORT int decode(const uint8_t *data, int64_t length, const struct decode_chunk *, const struct decode_columns *);

/* -- the replay --------------------------------------------------------------------------------------------- */

struct replay;

/* A batch of events, in the order of time; as `Events`. */
struct replay_events {
  int64_t count, sites;
  const int64_t *stacks, *subtypes;
  const int64_t *site;
  const uint8_t *releases;
  const int64_t *address, *size, *thread, *time;
};

/* As `Totals` without `releases`, which is what is left of the events. */
struct replay_totals {
  int64_t events, allocations, allocated, peak, peak_time, peak_event, leaked, leaked_blocks, temporary,
      unknown_releases, last_time;
};

enum { REPLAY_FIELDS = 9 }; /* columns of `Rows` */

/* NULL without memory. */
EXPORT struct replay *replay_new(int64_t interval, int64_t max_snapshots);
EXPORT void replay_delete(struct replay *);

/* Add the next events; 0 without memory, and then nothing else may be done but to delete. */
EXPORT int replay_add(struct replay *, const struct replay_events *);

/* Length of a snapshot, and number of rows, so far. */
EXPORT int64_t replay_interval(const struct replay *);
EXPORT int64_t replay_row_count(const struct replay *);

/* Write the rows, column after column, in no order. With the blocks that are live now as leaked ones. */
EXPORT void replay_rows(const struct replay *, int64_t *columns);

/* The blocks that are live now, in no order; as `LiveBlocks`. */
EXPORT int64_t replay_live_count(const struct replay *);
EXPORT void replay_live(const struct replay *, int64_t *address, int64_t *size, int64_t *key);

EXPORT void replay_totals(const struct replay *, struct replay_totals *);

#endif
