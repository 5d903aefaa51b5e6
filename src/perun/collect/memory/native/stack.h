/* The stack of the current thread: where it begins and ends, and the hash of its return addresses. */
#ifndef PERUN_MEMORY_STACK_H
#define PERUN_MEMORY_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Where a stack begins: in the function of the recorder that the program calls, which has a frame pointer. */
struct place {
  const void *caller;      /* its return address */
  const uintptr_t *frame;  /* its frame pointer: points to that of its caller */
};

#define HERE ((struct place){__builtin_return_address(0), __builtin_frame_address(0)})

struct stack {
  uint64_t hash;   /* of its return addresses */
  uint32_t frames; /* number of frames */
  bool deeper;     /* it has more frames */
};

/* The end of the stack (or other memory) that contains `at`, up to which reads are valid; 0 if it is not mapped. */
uintptr_t stack_end(uintptr_t at);

/* Call this in a forked child, in which the threads that held locks do not exist. */
void stack_forked(void);

/* The hash of a stack is a polynomial of its scattered addresses: the sum of each one times FACTOR to the power of the
 * number of frames outside of it. So it can be computed from both ends. */
#define STACK_FACTOR 0xd1342543de82ef95u

static inline uint64_t stack_scatter(uint64_t address) {
  address *= 0x9e3779b97f4a7c15u;
  return address ^ address >> 32;
}

static inline uint64_t stack_hash(uint64_t inner, uint64_t address) {
  return inner * STACK_FACTOR + stack_scatter(address);
}

static inline uintptr_t stack_plain(uintptr_t address) {
#if defined(__aarch64__)
  return address & 0xffffffffffffu; /* without the signature of pointer authentication */
#else
  return address;
#endif
}

#endif
