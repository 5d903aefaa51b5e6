/* The settings of the recorder in the environment; see record.h. */
#ifndef PERUN_MEMORY_ENVIRONMENT_H
#define PERUN_MEMORY_ENVIRONMENT_H

#include <limits.h>
#include <stdbool.h>

#include "record.h"

struct settings {
  char file[PATH_MAX];
  char libunwind[PATH_MAX];
  enum record_unwinder unwinder;
  bool follow;
  bool reachable;
};

/* Read the settings; false if there is no environment yet. `file` is empty if nothing shall be recorded. */
bool environment_read(struct settings *);

/* Remove the settings, and the recorder from LD_PRELOAD, for the children of the program. */
void environment_clean(void);

#endif
