#include "modules.h"

#include <string.h>

#define MODULES 4096 /* frames in further modules have an address only */

struct module {
  uintptr_t start, end;
  uint64_t identity; /* of path and offset */
};

/* Two lists, sorted by address: the known modules, and those that are being read. */
static struct module lists[2][MODULES];
static unsigned counts[2], known;

static uint64_t identity_of(const struct mapping *mapping) {
  uint64_t hash = mapping->offset * 0x9e3779b97f4a7c15u;
  for (const char *letter = mapping->path; *letter; letter++) hash = (hash ^ (uint8_t)*letter) * 0x100000001b3u;
  return hash;
}

/* The last known module that starts at or before `address`; NULL if there is none. */
static const struct module *before(uint64_t address) {
  unsigned low = 0, high = counts[known];
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (lists[known][middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? &lists[known][low - 1] : NULL;
}

bool modules_know(uint64_t address) {
  const struct module *module = before(address);
  return module && address < module->end;
}

struct reading {
  void (*define)(const struct mapping *);
  unsigned same;
};

static bool add(void *argument, const struct mapping *mapping) {
  struct reading *reading = argument;
  unsigned *count = &counts[!known];
  if (!mapping->executable) return true;
  if (*count == MODULES) return false;
  struct module module = {mapping->start, mapping->end, identity_of(mapping)};
  lists[!known][(*count)++] = module;
  const struct module *old = before(module.start);
  if (old && memcmp(old, &module, sizeof module) == 0)
    reading->same++;
  else
    reading->define(mapping);
  return true;
}

bool modules_read(void (*define)(const struct mapping *)) {
  static struct maps_buffer buffer;
  struct reading reading = {define, 0};
  counts[!known] = 0;
  if (!maps_read(&buffer, add, &reading)) return false;
  bool changed = reading.same < counts[known];
  known = !known;
  return changed;
}

void modules_forget(void) { counts[known] = 0; }
