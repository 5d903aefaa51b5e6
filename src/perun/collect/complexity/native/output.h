/* The files of a process and of its threads. */
#ifndef PERUN_COMPLEXITY_OUTPUT_H
#define PERUN_COMPLEXITY_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* Make the files of this process; false if that fails, and then nothing is recorded. Called once, and again in a forked
 * child. `first_tick` gets the tick at which the recording begins. */
bool output_start(uint64_t *first_tick);

/* Record the tick and the time of now, from which the reader knows the speed of the clock; `ended` at the end of the
 * process. */
void output_clock(bool ended);

/* The number of a new module, and of a new function in it; RECORD_NO_ID if there is no room. */
uint32_t output_module(const char *path);
uint32_t output_function(uint64_t address, uint32_t module);

/* Make the file of this thread, ready for the first event; NULL if that fails. */
struct record_thread *output_thread(void);

/* Make room for more events; false if that fails, and then nothing more of the thread is recorded. */
bool output_grow(struct record_thread *thread);

/* Give back the disk space that the file of an ending thread has reserved for more events. */
void output_shrink(const struct record_thread *thread);

/* Unmap the file of a thread that ends, or in a forked child the file of its parent. */
void output_close(struct record_thread *thread);

#endif
