/* The file with the samples. */
#ifndef PERUN_SAMPLE_OUTPUT_H
#define PERUN_SAMPLE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

extern struct record_header header;

/* Create the file, which must not exist yet; false with errno where that fails. */
int output_open(const char *path);
/* Define a module; its number, MODULE_UNKNOWN where there are too many. */
uint32_t output_module(uint32_t pid, const uint8_t *id, uint32_t id_size, const char *path);
/* The number of a function of Python, which is defined where it is new. */
uint32_t output_function(const char *name, const char *source);
void output_refusal(enum record_refusal why, const char *path);
/* The number of a stack, which is defined where it is new. */
uint32_t output_stack(const uint64_t *frames, size_t count, uint64_t flags);
void output_task(uint32_t kind, uint64_t time, uint32_t pid, uint32_t tid, uint32_t parent, const char *name);
void output_sample(const struct record_sample *sample);
/* A thread that waits. */
void output_wait(const struct record_sample *sample);
/* Write down all that there is. */
void output_flush(void);

#endif
