/* The two files of a recorded process. */
#ifndef PERUN_MEMORY_OUTPUT_H
#define PERUN_MEMORY_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* Make both files and map the tail, of `tail_size` bytes. With `child`, the name of the file is that of the first
 * process and this one's number is added to it. NULL where that is not possible or, for the first process, where
 * the file exists. */
struct record_tail *output_make(const char *file, bool child, size_t tail_size);

/* Append to the file; returns 0 or an errno. */
int output_append(const void *data, size_t size);

/* Write over the start of the file. */
void output_rewrite(const void *data, size_t size);

/* Shorten the tail to `size`; it stays mapped so far. */
void output_shorten(size_t size);

/* Forget the files of the parent process. */
void output_forget(void);

#endif
