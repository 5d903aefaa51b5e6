#include "unwind.h"

#include <dlfcn.h>
#include <string.h>

#include "maps.h"
#include "system.h"

/* -- the memory of stacks ----------------------------------------------------------------------------------- */

#define KNOWN_STACKS 64
#define GROWTH ((uintptr_t)1 << 20) /* the stack of the first thread grows: below it, it may be asked for again */

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

/* Programs with stacks of their own (coroutines) change between many: those seen are kept, for all threads. */
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

uintptr_t unwind_stack_end(uintptr_t at) {
  if (UNLIKELY(at - own_stack.start >= own_stack.end - own_stack.start)) own_stack = stack_of(at);
  return own_stack.end;
}

/* -- frame pointers ----------------------------------------------------------------------------------------- */

static struct stack unwind_frame_pointers(struct place place, uint64_t *frames, uint32_t most) {
  struct stack stack = {0, 0, false};
  uintptr_t frame = (uintptr_t)place.frame, end = unwind_stack_end(frame);
  uintptr_t address = unwind_plain((uintptr_t)place.caller);
  while (address) {
    if (stack.frames == most) {
      stack.deeper = true;
      break;
    }
    if (frames) frames[stack.frames] = address;
    stack.frames++;
    stack.hash = unwind_hash(stack.hash, address);
    if (!end) break; /* the mappings cannot be read */
    uintptr_t next = *(const uintptr_t *)frame;
    if (next <= frame || next % sizeof next || next > end - 2 * sizeof next) break;
    frame = next;
    address = unwind_plain(((const uintptr_t *)frame)[1]);
  }
  return stack;
}

/* -- libunwind ---------------------------------------------------------------------------------------------- */

#define LIBUNWIND_FRAMES 256 /* they are on the stack of the program */

static int (*unw_backtrace)(void **, int);

bool unwind_load_libunwind(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *found = handle ? dlsym(handle, "unw_backtrace") : NULL;
  if (!found) {
    dlerror(); /* the program is not to find our error */
    return false;
  }
  int (*function)(void **, int);
  memcpy(&function, &found, sizeof function);
  void *warm[4];
  function(warm, 4); /* it sets itself up at its first use */
  unw_backtrace = function;
  return true;
}

static struct stack unwind_libunwind(struct place place, uint64_t *frames, uint32_t most) {
  void *found[LIBUNWIND_FRAMES];
  struct stack stack = {0, 0, false};
  int count = unw_backtrace(found, LIBUNWIND_FRAMES), first = 0;
  while (first < count && found[first] != place.caller) first++; /* our own functions */
  if (first >= count) { /* it did not get out of them */
    found[0] = (void *)(uintptr_t)place.caller;
    first = 0;
    count = 1;
  }
  for (int i = first; i < count && found[i] && stack.frames < most; i++) {
    uint64_t address = unwind_plain((uintptr_t)found[i]);
    if (frames) frames[stack.frames] = address;
    stack.frames++;
    stack.hash = unwind_hash(stack.hash, address);
  }
  stack.deeper = count == LIBUNWIND_FRAMES;
  return stack;
}

/* -- any ---------------------------------------------------------------------------------------------------- */

struct stack unwind(enum record_unwinder unwinder, struct place place, uint64_t *frames, uint32_t most) {
  switch (unwinder) {
    case RECORD_UNWIND_TABLES:
      return unwind_tables(place, frames, most);
    case RECORD_UNWIND_LIBUNWIND:
      if (LIKELY(unw_backtrace)) return unwind_libunwind(place, frames, most);
      /* Before the constructor of this library ran. */
      return unwind_has_tables() ? unwind_tables(place, frames, most) : unwind_frame_pointers(place, frames, most);
    case RECORD_UNWIND_FRAME_POINTER:
      return unwind_frame_pointers(place, frames, most);
    case RECORD_UNWIND_NONE:
      break;
  }
  return (struct stack){0, 0, false};
}

void unwind_forget(void) { unwind_tables_forget(); }

void unwind_forked(void) {
  stacks_lock = 0;
  unwind_tables_forked();
}
