#include "rows.h"

#include <stdlib.h>

#define FIRST_BITS 10
#define SNAPSHOT_MASK (((int64_t)1 << 24) - 1) /* of a key: `LAST_SNAPSHOT` of analysis.py */

bool rows_make(struct rows *rows) {
  *rows = (struct rows){.bits = FIRST_BITS, .room = 1 << (FIRST_BITS - 1)};
  rows->all = calloc(rows->room, sizeof *rows->all);
  rows->slots = calloc((size_t)1 << rows->bits, sizeof *rows->slots);
  return rows->all && rows->slots;
}

void rows_release(struct rows *rows) {
  free(rows->all);
  free(rows->slots);
}

static uint32_t *slot_of(const struct rows *rows, int64_t key) {
  size_t mask = ((size_t)1 << rows->bits) - 1;
  size_t at = (size_t)(((uint64_t)key * 0x9e3779b97f4a7c15u) >> (64 - rows->bits));
  while (rows->slots[at] && rows->all[rows->slots[at] - 1].key != key) at = (at + 1) & mask;
  return rows->slots + at;
}

static bool grow(struct rows *rows) {
  if (rows->room >= NO_ROW / 2) return false;
  struct row *all = realloc(rows->all, 2 * (size_t)rows->room * sizeof *all);
  if (!all) return false;
  rows->all = all;
  uint32_t *slots = calloc((size_t)2 << rows->bits, sizeof *slots);
  if (!slots) return false;
  free(rows->slots);
  rows->slots = slots;
  rows->bits++;
  rows->room *= 2;
  for (uint32_t i = 0; i < rows->count; i++) *slot_of(rows, all[i].key) = i + 1;
  return true;
}

uint32_t rows_find(struct rows *rows, int64_t key) {
  uint32_t *slot = slot_of(rows, key);
  if (*slot) return *slot - 1;
  if (rows->count == rows->room) {
    if (!grow(rows)) return NO_ROW;
    slot = slot_of(rows, key);
  }
  rows->all[rows->count] = (struct row){.key = key, .peaks = rows->peaks};
  *slot = ++rows->count;
  return rows->count - 1;
}

void row_change(struct rows *rows, struct row *row, int64_t change) {
  row->peak = row_peak(rows, row);
  row->peaks = rows->peaks;
  row->live += change;
}

int64_t row_peak(const struct rows *rows, const struct row *row) {
  return row->peaks == rows->peaks ? row->peak : row->live;
}

uint32_t *rows_halve(struct rows *rows) {
  struct rows merged;
  uint32_t *moved = malloc((rows->count + 1) * sizeof *moved);
  if (!rows_make(&merged) || !moved) {
    rows_release(&merged);
    free(moved);
    return NULL;
  }
  merged.peaks = rows->peaks;
  for (uint32_t i = 0; i < rows->count; i++) {
    const struct row *row = rows->all + i;
    int64_t snapshot = row->key & SNAPSHOT_MASK;
    moved[i] = rows_find(&merged, row->key - snapshot + snapshot / 2);
    if (moved[i] == NO_ROW) {
      rows_release(&merged);
      free(moved);
      return NULL;
    }
    struct row *to = merged.all + moved[i];
    to->amount += row->amount;
    to->events += row->events;
    if (!to->address) to->address = row->address;
    to->temporary += row->temporary;
    to->lifetime += row->lifetime;
    to->live += row->live;
    to->peak += row_peak(rows, row);
  }
  rows_release(rows);
  *rows = merged;
  return moved;
}
