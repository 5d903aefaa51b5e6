/* Call stacks of the current thread: return addresses, innermost first. */
#ifndef PERUN_MEMORY_UNWIND_H
#define PERUN_MEMORY_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* Where a stack starts: in the function that was called by the program, which keeps a frame pointer. */
struct place {
  const void *caller;      /* its return address */
  const uintptr_t *frame;  /* its frame pointer: points to that of its caller */
};

#define HERE ((struct place){__builtin_return_address(0), __builtin_frame_address(0)})

struct stack {
  uint64_t hash;   /* of its addresses */
  uint32_t frames; /* how many */
  bool deeper;     /* there are more */
};

/* The unwinders that this processor has. */
bool unwind_has_tables(void);

/* Load libunwind. May be called once the loader has started the program; false where there is none. */
bool unwind_load_libunwind(const char *library);

/* The stack of `place`, of at most `most` frames; into `frames` too where it is not NULL. May wait for a lock of
 * the loader, so no lock may be held that an allocation waits for. */
struct stack unwind(enum record_unwinder, struct place, uint64_t *frames, uint32_t most);

/* Forget what is known about code: some was unloaded. */
void unwind_forget(void);

/* In a process that was forked off: threads that held locks are not there. */
void unwind_forked(void);

/* -- for the unwinders -------------------------------------------------------------------------------------- */

/* End of the stack (or other memory) that `at` lies in, 0 where it is not mapped. Reads are valid up to there. */
uintptr_t unwind_stack_end(uintptr_t at);

/* The hash of a stack is a polynomial of its scattered addresses: the sum of each times FACTOR to the power of how
 * many frames are outside of it. So it can be made from both ends. */
#define UNWIND_FACTOR 0xd1342543de82ef95u

static inline uint64_t unwind_scatter(uint64_t address) {
  address *= 0x9e3779b97f4a7c15u;
  return address ^ address >> 32;
}

static inline uint64_t unwind_hash(uint64_t inner, uint64_t address) {
  return inner * UNWIND_FACTOR + unwind_scatter(address);
}

static inline uintptr_t unwind_plain(uintptr_t address) {
#if defined(__aarch64__)
  return address & 0xffffffffffffu; /* without the signature of pointer authentication */
#else
  return address;
#endif
}

/* tables.c */
struct stack unwind_tables(struct place, uint64_t *frames, uint32_t most);
void unwind_tables_forget(void);
void unwind_tables_forked(void);

#endif
