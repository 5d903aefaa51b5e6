/* The executable memory of this process, as it was defined in the record. */
#ifndef PERUN_MEMORY_MODULES_H
#define PERUN_MEMORY_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"

/* Whether `address` is in a module that is known. */
bool modules_know(uint64_t address);

/* Read the mappings again, and call `define` for each module that was not known as it is now. Returns whether
 * some module that was known is gone or another one now. */
bool modules_read(void (*define)(const struct mapping *));

/* Know none. */
void modules_forget(void);

#endif
