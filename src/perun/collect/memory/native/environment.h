/* What the environment says to the recorder; see record.h. */
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
};

/* Read the settings; false where there is no environment yet. `file` is empty where nothing is to be recorded. */
bool environment_read(struct settings *);

/* Take the recorder out of the environment of the program and of its children. */
void environment_clean(void);

#endif
