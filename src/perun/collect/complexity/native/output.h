/* The files of a process and of its threads. */
#ifndef PERUN_COMPLEXITY_OUTPUT_H
#define PERUN_COMPLEXITY_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* The files of this process; false where they cannot be made, and then nothing is recorded. Called once, and again in
 * a child that was forked; `first_tick` is when the recording begins. */
bool output_start(uint64_t *first_tick);

/* Note how the clock has gone until now; `ended` at the end of the process. */
void output_clock(bool ended);

/* Number of a module that is new, and of a function in it; RECORD_NOBODY where there is no room. */
uint32_t output_module(const char *path);
uint32_t output_function(uint64_t address, uint32_t module);

/* The file of this thread, ready for the first event; NULL where it cannot be made. */
struct record_thread *output_thread(void);

/* Make room for more events; false where that cannot be, and then nothing more of the thread is recorded. */
bool output_grow(struct record_thread *thread);

/* Give back what the file of a thread that ends has reserved for more events. */
void output_shrink(const struct record_thread *thread);

/* Unmap the file of a thread that ends, or that this process has of the one that it was forked from. */
void output_close(struct record_thread *thread);

#endif
