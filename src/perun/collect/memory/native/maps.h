/* The memory mappings of this process, read without locks and without allocating. */
#ifndef PERUN_MEMORY_MAPS_H
#define PERUN_MEMORY_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct mapping {
  uintptr_t start, end;
  uint64_t offset;
  bool executable;
  bool writable; /* and readable */
  const char *path; /* empty for anonymous memory; also a name of the kernel in brackets, e.g. [stack] */
};

/* A buffer for at least one line. */
struct maps_buffer {
  char text[PATH_MAX + 4096];
};

/* Call `each` for every mapping in the order of addresses, until it returns false. Returns whether the list was
 * readable. */
bool maps_read(struct maps_buffer *, bool (*each)(void *, const struct mapping *), void *argument);

#endif
