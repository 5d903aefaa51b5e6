/* Adds up the samples of `perf script` whose stacks are the same text: see `_samples.py`.
 *
 * A block is a line of a sample and the lines of its stack, and ends with an empty line. Of the line of a sample only
 * the time and the period are read here; what stands around them, its shape, is told to Python once, which says of
 * what kind such samples are. Blocks of other forms are left to Python. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define OVERHEAD 200 /* bytes of a stack besides its text */
#define MOST_SHAPES 65536
#define LONGEST_SHAPE 512
#define MOST_DIGITS 18
#define PIECE 64
#define ODD -1 /* the kind of shapes that are left to Python */

enum { END, SHAPE, OTHER, FULL };

/* One step: why it ended, where the block begins, where its line and itself end, and where in the line the time begins
 * and the period is, of no size where there is none. */
struct step {
  int64_t why, at, line, end, time, period, period_end;
};

/* A stack of a kind with the sum of its periods; or a shape, whose sum is the kind. */
struct entry {
  uint64_t hash;
  int64_t kind, at, size, sum, count;
};

struct table {
  struct entry *all;
  uint32_t *slots; /* number of an entry, plus 1 */
  int64_t count, bits;
  char *text;
  int64_t used, room;
};

struct samples {
  uint64_t seed;
  int64_t most; /* bytes of stacks */
  struct table shapes, stacks;
};

static uint64_t mixed(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t word(const char *at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return value;
}

static uint64_t hash_of(const char *text, int64_t size, uint64_t seed) {
  const uint64_t a = 0x9e3779b97f4a7c15u, b = 0xbf58476d1ce4e5b9u;
  uint64_t one = seed, other = seed ^ b;
  int64_t at = 0;
  for (; at + 32 <= size; at += 32) {
    one = mixed(word(text + at) ^ a, word(text + at + 8) ^ one);
    other = mixed(word(text + at + 16) ^ b, word(text + at + 24) ^ other);
  }
  char rest[32] = {0};
  memcpy(rest, text + at, (size_t)(size - at));
  one = mixed(word(rest) ^ a, word(rest + 8) ^ one);
  other = mixed(word(rest + 16) ^ b, word(rest + 24) ^ other);
  return mixed(one ^ (uint64_t)size, other ^ a);
}

static bool table_make(struct table *table) {
  table->bits = 10;
  table->all = calloc((size_t)1 << (table->bits - 1), sizeof *table->all);
  table->slots = calloc((size_t)1 << table->bits, sizeof *table->slots);
  return table->all && table->slots;
}

static void table_release(struct table *table) {
  free(table->all);
  free(table->slots);
  free(table->text);
}

static void table_clear(struct table *table) {
  table->count = table->used = 0;
  memset(table->slots, 0, ((size_t)1 << table->bits) * sizeof *table->slots);
}

static uint32_t *slot_of(const struct table *table, uint64_t hash, int64_t kind, const char *text, int64_t size) {
  size_t mask = ((size_t)1 << table->bits) - 1, at = (size_t)(hash >> (64 - table->bits));
  for (; table->slots[at]; at = (at + 1) & mask) {
    const struct entry *one = table->all + table->slots[at] - 1;
    if (one->hash == hash && one->size == size && one->kind == kind &&
        !memcmp(table->text + one->at, text, (size_t)size))
      break;
  }
  return table->slots + at;
}

/* Room for one more entry with that much text; false where there is no memory. */
static bool table_grow(struct table *table, int64_t size) {
  if (table->used + size > table->room) {
    int64_t room = 2 * table->room + size + 4096;
    char *text = realloc(table->text, (size_t)room);
    if (!text) return false;
    table->text = text;
    table->room = room;
  }
  if (table->count < (int64_t)1 << (table->bits - 1)) return true;
  struct entry *all = realloc(table->all, ((size_t)1 << table->bits) * sizeof *all);
  if (!all) return false;
  table->all = all;
  uint32_t *slots = calloc((size_t)2 << table->bits, sizeof *slots);
  if (!slots) return false;
  free(table->slots);
  table->slots = slots;
  table->bits++;
  size_t mask = ((size_t)1 << table->bits) - 1;
  for (int64_t number = 0; number < table->count; number++) {
    size_t at = (size_t)(all[number].hash >> (64 - table->bits));
    while (slots[at]) at = (at + 1) & mask;
    slots[at] = (uint32_t)number + 1;
  }
  return true;
}

static struct entry *table_add(struct table *table, uint64_t hash, int64_t kind, const char *text, int64_t size) {
  if (!table_grow(table, size)) return NULL;
  uint32_t *slot = slot_of(table, hash, kind, text, size);
  memcpy(table->text + table->used, text, (size_t)size);
  struct entry *one = table->all + table->count;
  *one = (struct entry){.hash = hash, .kind = kind, .at = table->used, .size = size};
  table->used += size;
  *slot = (uint32_t)++table->count;
  return one;
}

static bool is_digit(char one) { return one >= '0' && one <= '9'; }

static bool is_space(char one) { return one == ' ' || one == '\t'; }

/* Where the word `digits.digits:` ends that comes first in the line of a step, which begins at `step.time`; else 0. */
static int64_t time_end(const char *data, struct step *step) {
  for (int64_t at = step->at + 1; at < step->line; at++) {
    if (!is_digit(data[at]) || !is_space(data[at - 1])) continue;
    step->time = at;
    while (is_digit(data[at])) at++;
    if (data[at] != '.') continue;
    int64_t dot = at++;
    while (is_digit(data[at])) at++;
    if (at > dot + 1 && data[at] == ':' && is_space(data[at + 1])) return at + 1;
  }
  return 0;
}

EXPORT struct samples *samples_new(uint64_t seed, int64_t most) {
  struct samples *made = calloc(1, sizeof *made);
  if (made) *made = (struct samples){.seed = seed, .most = most};
  if (!made || !table_make(&made->shapes) || !table_make(&made->stacks)) abort();
  return made;
}

EXPORT void samples_free(struct samples *samples) {
  table_release(&samples->shapes);
  table_release(&samples->stacks);
  free(samples);
}

/* The shape of the line of a step, as text: what stands before the time, whether there is a period, and what stands
 * behind that; its size, 0 where there is no room for it. */
static int64_t shape_of(char *shape, const char *data, const struct step *step) {
  int64_t before = step->time - step->at, behind = step->line - step->period_end;
  if (before + behind + 2 > LONGEST_SHAPE) return 0;
  memcpy(shape, data + step->at, (size_t)before);
  shape[before] = '\n';
  shape[before + 1] = step->period < step->period_end;
  memcpy(shape + before + 2, data + step->period_end, (size_t)behind);
  return before + 2 + behind;
}

/* Of what kind the shape of the step is, that ended for it. */
EXPORT void samples_shape(struct samples *samples, const char *data, const struct step *step, int64_t kind) {
  char text[LONGEST_SHAPE];
  int64_t size = shape_of(text, data, step);
  if (samples->shapes.count >= MOST_SHAPES) table_clear(&samples->shapes);
  struct entry *shape = table_add(&samples->shapes, hash_of(text, size, samples->seed), 0, text, size);
  if (shape) shape->sum = kind;
}

/* Where from `at` on the first line break is that an empty line follows; -1 where there is none. */
static int64_t block_end(const char *data, int64_t at, int64_t size) {
  for (; at + PIECE < size; at += PIECE) {
    unsigned char found = 0; /* the loop has no branches, so that it becomes a few instructions */
    for (int i = 0; i < PIECE; i++) found |= (data[at + i] == '\n') & (data[at + i + 1] == '\n');
    if (found) break;
  }
  for (; at + 1 < size; at++)
    if (data[at] == '\n' && data[at + 1] == '\n') return at;
  return -1;
}

/* Add the block of the step; false where Python has to do something about it. */
static bool added(struct samples *samples, const char *data, struct step *step) {
  int64_t to = time_end(data, step);
  const char *stack = data + step->line + 1;
  int64_t length = step->end > step->line ? step->end - step->line - 1 : 0;
  if (!to || (length && !is_space(*stack)) || is_space(data[step->at]) || data[step->at] == '#') return false;
  while (is_space(data[to])) to++;
  step->period = step->period_end = to;
  int64_t period = 0;
  for (; is_digit(data[to]); to++) {
    if (to - step->period >= MOST_DIGITS) return false;
    period = 10 * period + data[to] - '0';
  }
  if (to > step->period && is_space(data[to]))
    step->period_end = to;
  else
    period = 1;
  char text[LONGEST_SHAPE];
  int64_t size = shape_of(text, data, step);
  if (!size) return false;
  uint32_t shape = *slot_of(&samples->shapes, hash_of(text, size, samples->seed), 0, text, size);
  if (!shape) {
    step->why = SHAPE;
    return false;
  }
  int64_t kind = samples->shapes.all[shape - 1].sum;
  if (kind == ODD) return false;
  uint64_t hash = hash_of(stack, length, samples->seed + (uint64_t)kind);
  uint32_t slot = *slot_of(&samples->stacks, hash, kind, stack, length);
  struct entry *one = slot ? samples->stacks.all + slot - 1 : NULL;
  if (!one) {
    bool full = samples->stacks.used + length + OVERHEAD * samples->stacks.count > samples->most;
    one = full ? NULL : table_add(&samples->stacks, hash, kind, stack, length);
    if (!one && samples->stacks.count) step->why = FULL;
  }
  int64_t sum;
  if (!one || __builtin_add_overflow(one->sum, period, &sum)) return false;
  one->sum = sum;
  one->count++;
  return true;
}

/* Add up the blocks from `step.at` on, up to where Python has to do something. */
EXPORT void samples_take(struct samples *samples, const char *data, int64_t size, struct step *step) {
  for (int64_t at = step->at;; at = step->end) {
    while (at < size && data[at] == '\n') at++;
    *step = (struct step){.why = END, .at = at};
    const char *newline = memchr(data + at, '\n', (size_t)(size - at));
    if (!newline) return;
    step->line = newline - data;
    step->end = block_end(data, step->line, size);
    if (step->end < 0) return;
    step->why = OTHER;
    if (!added(samples, data, step)) return;
  }
}

/* The stacks, and where their text is; they are valid until the next call. */
EXPORT const struct entry *samples_stacks(const struct samples *samples, const char **text, int64_t *count) {
  *text = samples->stacks.text;
  *count = samples->stacks.count;
  return samples->stacks.all;
}

EXPORT void samples_clear(struct samples *samples) {
  table_clear(&samples->shapes);
  table_clear(&samples->stacks);
}
