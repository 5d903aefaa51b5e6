/* Call stacks of the current thread: return addresses, innermost first. */
#ifndef PERUN_MEMORY_UNWIND_H
#define PERUN_MEMORY_UNWIND_H

#include "record.h"
#include "tables.h"

/* Load libunwind. May be called once the loader has started the program; false where there is none. */
bool unwind_load_libunwind(const char *library);

/* The stack of `place`, of at most `most` frames; into `frames` too where it is not NULL. May wait for a lock of
 * the loader, so no lock may be held that an allocation waits for. */
struct stack unwind(enum record_unwinder, struct place, uint64_t *frames, uint32_t most);

/* Forget what is known about code: some was unloaded. */
void unwind_forget(void);

/* In a process that was forked off: threads that held locks are not there. */
void unwind_forked(void);

#endif
