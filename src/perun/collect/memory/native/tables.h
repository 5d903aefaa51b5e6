/* Unwinding by the tables (.eh_frame) that compilers make for exceptions. */
#ifndef PERUN_MEMORY_TABLES_H
#define PERUN_MEMORY_TABLES_H

#include "stack.h"

/* Whether this is supported on this processor. */
bool unwind_has_tables(void);

/* As unwind, unwind_forget and unwind_forked. */
struct stack unwind_tables(struct place, uint64_t *frames, uint32_t most);
void unwind_tables_forget(void);
void unwind_tables_forked(void);

#endif
