/* The recorder of one process: writes events to its files in the order of time.
 *
 * The states of a process (`alive`, `off` and `tail->state` in recorder.c):
 *
 *                 the first call, with settings, makes the files                    exit, _exit
 *   NOT STARTED ----------------------------------------------------> RECORDING ----------------> ENDED
 *        |                                                                |      late events are still recorded
 *        | no settings, or the files cannot be made                       | a write fails (tail->error)
 *        v                                                                v
 *       OFF <-------------------------------------------------------------+
 *
 * A forked child begins as NOT STARTED: with PERUN_MEMORY_FOLLOW it makes its own files, otherwise it is OFF.
 * OFF is final; later events are counted in tail->lost. A kill needs no transition: the tail is a shared mapping,
 * so that the file has all events up to then, with the state RUNNING.
 *
 * The states of each half of the tail, which take turns once the process has a second thread:
 *
 *   UNUSED -open_chunk-> OPEN -close_chunk-> CLOSED -await_writers-> COMPLETE -pack-> PACKED -open_chunk-> OPEN
 *
 *   OPEN      threads reserve events by adding 1 to `cursor`, without a lock; the mark of an event is written last
 *   CLOSED    the cursor points to the other half, or nowhere; threads may still write the events they reserved
 *   COMPLETE  every reserved event has its mark; those of threads that never finish are counted in tail->skipped
 *   PACKED    the chunk is in FILE; if that failed, the process is OFF and the half keeps the events
 *
 * The states of a thread (`own.busy`): OUTSIDE of the recorder; RECORDING, when a nested allocation (of a signal
 * handler) is skipped and counted; PAUSED, when an allocation of the recorder itself is ignored.
 */
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
  int error; /* errno of the program */
};

/* Enter the recorder for a call and unwind its stack. False if the call is not recorded; then none of the functions
 * below may be called. The first call of a process starts its recording. */
bool recorder_enter(struct call *, struct place);

/* Record an event of this call. */
void recorder_write(struct call *, enum record_kind, const void *address, uint64_t amount);

/* End the call, and restore errno. */
void recorder_leave(struct call *);

/* Enter the recorder again for a call that was left, to record another event with the same stack. */
void recorder_enter_again(struct call *);

/* Code may have been unloaded. */
void recorder_unloaded(void);

/* Call this once the loader has initialized the program: loads libunwind if the settings choose it. */
void recorder_ready(void);

/* The process ends with this state; events may still come. `allocator_of_libc`: malloc is that of the C library. */
void recorder_end(enum record_state, bool allocator_of_libc);

/* The program is about to take from itself what the recorder needs: it records no more. */
void recorder_confined(void);

/* Run `action` without recording what it allocates. */
void recorder_aside(void (*action)(void));

/* The same in two steps: what this thread allocates between them is not recorded. The second takes what the first returned. */
uint32_t recorder_pause(void);
void recorder_resume(uint32_t);

#endif
