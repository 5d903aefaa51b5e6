/* The two files of a recorded process. */
#ifndef PERUN_MEMORY_OUTPUT_H
#define PERUN_MEMORY_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* Make both files and map the tail, of `tail_size` bytes. With `child`, the id of this process is appended to the name of
 * the file. NULL if that fails or, for the first process, if the file exists. */
struct record_tail *output_make(const char *file, bool child, size_t tail_size);

/* Tell that this child process has no files, of which nobody else knows: remove FILE.whole. */
void output_refused(const char *file);

/* Remove both files, of which nothing can be read yet. */
void output_discard(void);

/* Append to the file; returns 0 or an errno. */
int output_append(const void *data, size_t size);

/* Write over the start of the file. */
void output_rewrite(const void *data, size_t size);

/* Shorten the tail to `size` bytes, and unmap the rest. */
void output_shorten(size_t size);

/* Release the files of the parent process, in a forked child. */
void output_forget(void);

#endif
