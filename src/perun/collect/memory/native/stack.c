#include "stack.h"

#include <string.h>

#include "maps.h"
#include "system.h"

#define KNOWN_STACKS 64
#define GROWTH ((uintptr_t)1 << 20) /* the stack of the main thread grows; so much below it counts as part of it */

struct range {
  uintptr_t start, end;
};

static __thread struct range own_stack __attribute__((tls_model("initial-exec")));

struct search {
  uintptr_t at;
  struct range found;
};

static bool holds(void *argument, const struct mapping *mapping) {
  struct search *search = argument;
  if (search->at >= mapping->end) return true;
  if (search->at >= mapping->start) {
    search->found = (struct range){mapping->start, mapping->end};
    if (strcmp(mapping->path, "[stack]") == 0) search->found.start -= GROWTH;
  }
  return false;
}

/* Programs with coroutines switch between many stacks: the recently used ones of all threads are cached. */
static lock_t stacks_lock;

static struct range stack_of(uintptr_t at) {
  static struct range known[KNOWN_STACKS];
  static unsigned oldest;
  static struct maps_buffer buffer;
  struct search search = {.at = at};
  lock_take(&stacks_lock);
  for (unsigned i = 0; i < KNOWN_STACKS && !search.found.end; i++)
    if (at >= known[i].start && at < known[i].end) search.found = known[i];
  if (!search.found.end) {
    maps_read(&buffer, holds, &search);
    known[oldest++ % KNOWN_STACKS] = search.found;
  }
  lock_release(&stacks_lock);
  return search.found;
}

uintptr_t stack_end(uintptr_t at) {
  if (UNLIKELY(at - own_stack.start >= own_stack.end - own_stack.start)) own_stack = stack_of(at);
  return own_stack.end;
}

void stack_forked(void) { stacks_lock = 0; }
