/* The executable memory of this process, as the recording defines it. */
#ifndef PERUN_MEMORY_MODULES_H
#define PERUN_MEMORY_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"

/* Whether `address` is in a known module. */
bool modules_know(uint64_t address);

/* Read the mappings again, and call `define` for each new or changed module. Returns whether a known module has changed
 * or is not mapped any more. */
bool modules_read(void (*define)(const struct mapping *));

/* Forget all modules, in a forked child. */
void modules_forget(void);

#endif
