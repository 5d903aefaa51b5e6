#include <stdlib.h>

#include "../native/record.h"
#include "analysis.h"
#include "live.h"
#include "rows.h"

#define NUMBERED (1 << 16) /* the recorder numbers threads from 0 to 65535; others are searched for */
#define AHEAD 12 /* so many events before its event, a block is fetched into the cache */

/* A thread, and the address of its latest allocation. */
struct thread {
  int64_t number, latest;
};

struct replay {
  int64_t interval, max_snapshots;
  struct live live;
  struct rows rows;
  struct thread *threads;
  uint32_t thread_count, thread_room;
  uint32_t numbered[NUMBERED]; /* place of the thread with this number + 1; 0 for none */
  int64_t heap;
  struct replay_totals totals;
};

struct replay *replay_new(int64_t interval, int64_t max_snapshots) {
  struct replay *replay = calloc(1, sizeof *replay);
  if (!replay) return NULL;
  replay->interval = interval;
  replay->max_snapshots = max_snapshots;
  replay->totals.peak_event = -1;
  if (live_make(&replay->live) && rows_make(&replay->rows)) return replay;
  replay_delete(replay);
  return NULL;
}

void replay_delete(struct replay *replay) {
  live_release(&replay->live);
  rows_release(&replay->rows);
  free(replay->threads);
  free(replay);
}

/* -- snapshots ---------------------------------------------------------------------------------------------- */

static bool double_interval(struct replay *replay) {
  uint32_t *moved = rows_halve(&replay->rows);
  if (!moved) return false;
  for (size_t i = 0; i < (size_t)1 << replay->live.bits; i++)
    if (replay->live.slots[i].row) replay->live.slots[i].row = moved[replay->live.slots[i].row - 1] + 1;
  free(moved);
  replay->interval *= 2;
  return true;
}

/* Make snapshots so long that there are not more than wanted until the last event of the batch. */
static bool fit_interval(struct replay *replay, const struct replay_events *events) {
  for (int64_t i = 0; i < events->count; i++)
    if (events->time[i] > replay->totals.last_time) replay->totals.last_time = events->time[i];
  while (replay->totals.last_time / replay->interval >= replay->max_snapshots)
    if (!double_interval(replay)) return false;
  return true;
}

/* -- events ------------------------------------------------------------------------------------------------- */

/* The latest row of each site of a batch: most events have that of the one before. */
struct latest {
  int64_t begin, end; /* of its snapshot */
  uint32_t row;
};

static uint32_t row_of(struct replay *replay, const struct replay_events *events, struct latest *latest, int64_t i) {
  int64_t time = events->time[i], site = events->site[i];
  latest += site;
  if (time >= latest->begin && time < latest->end) return latest->row;
  int64_t snapshot = time / replay->interval;
  latest->row = rows_find(&replay->rows, events->stacks[site] << 32 | events->subtypes[site] << 24 | snapshot);
  latest->begin = snapshot * replay->interval;
  latest->end = latest->begin + replay->interval;
  return latest->row;
}

static struct thread *thread_of(struct replay *replay, int64_t number) {
  bool small = number >= 0 && number < NUMBERED;
  if (small && replay->numbered[number]) return replay->threads + replay->numbered[number] - 1;
  uint32_t i = small ? replay->thread_count : 0;
  while (i < replay->thread_count && replay->threads[i].number != number) i++;
  if (i == replay->thread_room) {
    uint32_t room = i ? 2 * i : 16;
    struct thread *threads = realloc(replay->threads, room * sizeof *threads);
    if (!threads) return NULL;
    replay->threads = threads;
    replay->thread_room = room;
  }
  if (i == replay->thread_count) replay->threads[replay->thread_count++] = (struct thread){number, 0};
  if (small) replay->numbered[number] = i + 1;
  return replay->threads + i;
}

/* An allocation at a live address means that its release was not recorded; it ends the block too. */
static bool allocate(struct replay *replay, const struct replay_events *events, int64_t i, uint32_t row) {
  struct thread *thread = thread_of(replay, events->thread[i]);
  if (!thread || !live_grow(&replay->live)) return false;
  struct block *block = live_find(&replay->live, events->address[i]);
  if (block->row) {
    row_change(&replay->rows, replay->rows.all + block->row - 1, -block->size);
    replay->heap -= block->size;
  } else {
    replay->live.count++;
  }
  *block = (struct block){events->address[i], events->size[i], events->time[i], row + 1,
                          (uint32_t)(thread - replay->threads)};
  thread->latest = events->address[i];
  row_change(&replay->rows, replay->rows.all + row, events->size[i]);
  replay->rows.all[row].amount += events->size[i];
  replay->heap += events->size[i];
  replay->totals.allocations++;
  replay->totals.allocated += events->size[i];
  return true;
}

static void release(struct replay *replay, const struct replay_events *events, int64_t i) {
  struct block *block = live_find(&replay->live, events->address[i]);
  if (!block->row) {
    replay->totals.unknown_releases++;
    return;
  }
  struct row *row = replay->rows.all + block->row - 1;
  const struct thread *thread = replay->threads + block->thread;
  if (events->time[i] > block->time) row->lifetime += events->time[i] - block->time;
  if (thread->latest == block->address && events->subtypes[events->site[i]] != RECORD_REALLOC_RELEASE) {
    row->temporary++;
    replay->totals.temporary++;
  }
  row_change(&replay->rows, row, -block->size);
  replay->heap -= block->size;
  live_remove(&replay->live, block);
}

static bool add(struct replay *replay, const struct replay_events *events, struct latest *latest, int64_t i) {
  uint32_t row = row_of(replay, events, latest, i);
  if (row == NO_ROW) return false;
  replay->rows.all[row].events++;
  if (!replay->rows.all[row].address) replay->rows.all[row].address = events->address[i];
  if (events->releases[i])
    release(replay, events, i);
  else if (!allocate(replay, events, i, row))
    return false;
  if (replay->heap > replay->totals.peak) {
    replay->rows.peaks++;
    replay->totals.peak = replay->heap;
    replay->totals.peak_time = events->time[i];
    replay->totals.peak_event = replay->totals.events;
  }
  replay->totals.events++;
  return true;
}

int replay_add(struct replay *replay, const struct replay_events *events) {
  if (!fit_interval(replay, events)) return false;
  struct latest *latest = calloc((size_t)events->sites + 1, sizeof *latest);
  bool done = latest;
  for (int64_t i = 0; done && i < events->count; i++) {
    if (i + AHEAD < events->count) live_prefetch(&replay->live, events->address[i + AHEAD]);
    done = add(replay, events, latest, i);
  }
  free(latest);
  return done;
}

/* -- results ------------------------------------------------------------------------------------------------ */

int64_t replay_interval(const struct replay *replay) { return replay->interval; }

int64_t replay_row_count(const struct replay *replay) { return replay->rows.count; }

void replay_rows(const struct replay *replay, int64_t *columns) {
  enum { KEY, AMOUNT, EVENTS, ADDRESS, PEAK, LEAKED, LEAKED_BLOCKS, TEMPORARY, LIFETIME };
  int64_t *column[REPLAY_FIELDS], count = replay->rows.count;
  for (int i = 0; i < REPLAY_FIELDS; i++) column[i] = columns + i * count;
  for (int64_t i = 0; i < count; i++) {
    const struct row *row = replay->rows.all + i;
    column[KEY][i] = row->key;
    column[AMOUNT][i] = row->amount;
    column[EVENTS][i] = row->events;
    column[ADDRESS][i] = row->address;
    column[PEAK][i] = replay->rows.peaks ? row_peak(&replay->rows, row) : 0;
    column[LEAKED][i] = row->live;
    column[LEAKED_BLOCKS][i] = 0;
    column[TEMPORARY][i] = row->temporary;
    column[LIFETIME][i] = row->lifetime;
  }
  for (size_t i = 0; i < (size_t)1 << replay->live.bits; i++) {
    const struct block *block = replay->live.slots + i;
    if (!block->row) continue;
    int64_t age = replay->totals.last_time - block->time;
    column[LEAKED_BLOCKS][block->row - 1]++;
    if (age > 0) column[LIFETIME][block->row - 1] += age;
  }
}

void replay_totals(const struct replay *replay, struct replay_totals *totals) {
  *totals = replay->totals;
  totals->leaked = replay->heap;
  totals->leaked_blocks = (int64_t)replay->live.count;
}

int64_t replay_live_count(const struct replay *replay) { return (int64_t)replay->live.count; }

void replay_live(const struct replay *replay, int64_t *address, int64_t *size, int64_t *key) {
  for (size_t i = 0, at = 0; i < (size_t)1 << replay->live.bits; i++) {
    const struct block *block = replay->live.slots + i;
    if (!block->row) continue;
    address[at] = block->address;
    size[at] = block->size;
    key[at++] = replay->rows.all[block->row - 1].key;
  }
}
