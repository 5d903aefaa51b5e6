/* Sums of events by stack, subtype and snapshot. */
#ifndef PERUN_MEMORY_ROWS_H
#define PERUN_MEMORY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `live` are the bytes that are live now. `peak` are those that were live at the peak, if `peaks` is the number of the
 * latest one; else the row has not changed since, so that it is `live`. */
struct row {
  int64_t key;
  int64_t amount, events, address, temporary, lifetime;
  int64_t live, peak;
  uint64_t peaks;
};

struct rows {
  struct row *all;
  uint32_t *slots; /* a hash table by key: number of the row + 1; 0 for a free slot */
  uint32_t count, room;
  unsigned bits;  /* of the number of slots */
  uint64_t peaks; /* how many times the heap was larger than ever before */
};

#define NO_ROW UINT32_MAX

bool rows_make(struct rows *);
void rows_release(struct rows *);

/* The number of the row with this key, which is made if needed; NO_ROW without memory. */
uint32_t rows_find(struct rows *, int64_t key);

/* Change the live bytes of a row. */
void row_change(struct rows *, struct row *, int64_t change);

/* Live bytes of a row at the latest peak. */
int64_t row_peak(const struct rows *, const struct row *);

/* Merge the rows of each two snapshots that follow each other. Row i becomes row `moved[i]`, which is to be freed; NULL
 * without memory. */
uint32_t *rows_halve(struct rows *);

#endif
