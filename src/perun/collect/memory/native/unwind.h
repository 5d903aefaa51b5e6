/* Call stacks of the current thread: return addresses, innermost first. */
#ifndef PERUN_MEMORY_UNWIND_H
#define PERUN_MEMORY_UNWIND_H

#include "record.h"
#include "tables.h"

/* Load libunwind; false if it is not installed. May be called once the loader has initialized the program. */
bool unwind_load_libunwind(const char *library);

/* The stack of `place`, of at most `most` frames, whose addresses go to `frames` unless that is NULL. May wait for a lock
 * of the loader, so that the caller must hold no lock for which an allocation waits. */
struct stack unwind(enum record_unwinder, struct place, uint64_t *frames, uint32_t most);

/* Discard what is known about code, because some was unloaded. */
void unwind_forget(void);

/* Call this in a forked child, in which the threads that held locks do not exist. */
void unwind_forked(void);

#endif
