/* The other threads of the process, stopped by a helper process that shares its memory (ptrace). */
#ifndef PERUN_MEMORY_STOPPED_H
#define PERUN_MEMORY_STOPPED_H

#include <stddef.h>
#include <stdint.h>

#define STOPPED_THREADS 4096
#define STOPPED_REGISTERS 40

struct stopped {
  uintptr_t stack;                         /* its stack pointer; 0 if the thread could not be stopped */
  uint64_t registers[STOPPED_REGISTERS];
  size_t register_count;
};

/* Stop all other threads, call `action` with them in the helper, and let them go on. If there is no other thread, or no
 * helper can be started, `action` is called in this process. Returns when it has returned. `threads` has room for
 * STOPPED_THREADS. */
void with_threads_stopped(struct stopped *threads, void *helper_stack, size_t helper_stack_size,
                          void (*action)(const struct stopped *threads, size_t count, unsigned unseen));

#endif
