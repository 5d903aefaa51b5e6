#include "unwind.h"

#include <dlfcn.h>
#include <string.h>

#include "system.h"

/* -- frame pointers ----------------------------------------------------------------------------------------- */

static struct stack unwind_frame_pointers(struct place place, uint64_t *frames, uint32_t most) {
  struct stack stack = {0, 0, false};
  uintptr_t frame = (uintptr_t)place.frame, end = stack_end(frame);
  uintptr_t address = stack_plain((uintptr_t)place.caller);
  while (address) {
    if (stack.frames == most) {
      stack.deeper = true;
      break;
    }
    if (frames) frames[stack.frames] = address;
    stack.frames++;
    stack.hash = stack_hash(stack.hash, address);
    if (!end) break; /* the mappings cannot be read */
    uintptr_t next = *(const uintptr_t *)frame;
    if (next <= frame || next % sizeof next || next > end - 2 * sizeof next) break;
    frame = next;
    address = stack_plain(((const uintptr_t *)frame)[1]);
  }
  return stack;
}

/* -- libunwind ---------------------------------------------------------------------------------------------- */

#define LIBUNWIND_FRAMES 256 /* few, because the array is on the stack of the program */

static int (*unw_backtrace)(void **, int);

bool unwind_load_libunwind(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *found = handle ? dlsym(handle, "unw_backtrace") : NULL;
  if (!found) {
    dlerror(); /* clear the error, which is not one of the program */
    return false;
  }
  int (*function)(void **, int);
  memcpy(&function, &found, sizeof function);
  void *warm[4];
  function(warm, 4); /* its first call initializes it, which may allocate */
  unw_backtrace = function;
  return true;
}

static struct stack unwind_libunwind(struct place place, uint64_t *frames, uint32_t most) {
  void *found[LIBUNWIND_FRAMES];
  struct stack stack = {0, 0, false};
  int count = unw_backtrace(found, LIBUNWIND_FRAMES), first = 0;
  while (first < count && found[first] != place.caller) first++; /* skip the frames of the recorder */
  if (first >= count) { /* it found no others */
    found[0] = (void *)(uintptr_t)place.caller;
    first = 0;
    count = 1;
  }
  for (int i = first; i < count && found[i] && stack.frames < most; i++) {
    uint64_t address = stack_plain((uintptr_t)found[i]);
    if (frames) frames[stack.frames] = address;
    stack.frames++;
    stack.hash = stack_hash(stack.hash, address);
  }
  stack.deeper = count == LIBUNWIND_FRAMES;
  return stack;
}

/* -- all unwinders ---------------------------------------------------------------------------------------------------- */

struct stack unwind(enum record_unwinder unwinder, struct place place, uint64_t *frames, uint32_t most) {
  switch (unwinder) {
    case RECORD_UNWIND_TABLES:
      return unwind_tables(place, frames, most);
    case RECORD_UNWIND_LIBUNWIND:
      if (LIKELY(unw_backtrace)) return unwind_libunwind(place, frames, most);
      /* recorder_ready() has not loaded libunwind yet. */
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
  stack_forked();
  unwind_tables_forked();
}
