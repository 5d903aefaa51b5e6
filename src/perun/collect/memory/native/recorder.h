/* The recorder of one process: takes events, in the order they come, into its files. */
#ifndef PERUN_MEMORY_RECORDER_H
#define PERUN_MEMORY_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "unwind.h"

/* A call of the program into the recorder. */
struct call {
  struct place place;
  struct stack stack;
  int error; /* errno as the program had it */
};

/* Begin to record a call; its stack is found here. False where nothing is to be recorded: then none of the
 * functions below may be called. A process is set up by its first call. */
bool recorder_enter(struct call *, struct place);

/* Record an event of this call. */
void recorder_write(struct call *, enum record_kind, const void *address, uint64_t amount);

/* End the call; errno is as it was. */
void recorder_leave(struct call *);

/* Come back into a call that was left, for another event with the same stack. */
void recorder_enter_again(struct call *);

/* Code may have been unloaded. */
void recorder_unloaded(void);

/* What is left to do once the loader has set the program up. */
void recorder_ready(void);

/* The process ends in this way; events may still come. */
void recorder_end(enum record_state);

/* Run `action` such that what it allocates is not recorded. */
void recorder_aside(void (*action)(void));

#endif
