#include "environment.h"

#include <string.h>

#include "unwind.h"

#define OWN_PREFIX "PERUN_MEMORY_"
#define PRELOAD "LD_PRELOAD="

extern char **environ;

static const char *value_of(const char *name) {
  size_t length = strlen(name);
  for (char **entry = environ; *entry; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return "";
}

static enum record_unwinder unwinder_of(const char *name) {
  if (strcmp(name, "none") == 0) return RECORD_UNWIND_NONE;
  if (strcmp(name, "fp") == 0) return RECORD_UNWIND_FRAME_POINTER;
  if (strcmp(name, "libunwind") == 0) return RECORD_UNWIND_LIBUNWIND;
  return strcmp(name, "tables") == 0 || unwind_has_tables() ? RECORD_UNWIND_TABLES : RECORD_UNWIND_FRAME_POINTER;
}

bool environment_read(struct settings *settings) {
  if (!environ) return false;
  const char *file = value_of(OWN_PREFIX "FILE"), *library = value_of(OWN_PREFIX "LIBUNWIND");
  if (!*library) library = "libunwind.so.8";
  settings->file[0] = settings->libunwind[0] = 0;
  /* Leave room for the id of a process and for `.tail`. */
  if (*file == '/' && strlen(file) < sizeof settings->file - 64) strcpy(settings->file, file);
  if (strlen(library) < sizeof settings->libunwind) strcpy(settings->libunwind, library);
  settings->unwinder = unwinder_of(value_of(OWN_PREFIX "UNWIND"));
  settings->reachable = strcmp(value_of(OWN_PREFIX "REACHABLE"), "1") == 0;
  settings->follow = strcmp(value_of(OWN_PREFIX "FOLLOW"), "1") == 0;
  return true;
}

void environment_clean(void) {
  char **kept = environ;
  for (char **entry = environ; *entry; entry++) {
    if (strncmp(*entry, OWN_PREFIX, strlen(OWN_PREFIX)) == 0) continue;
    if (strncmp(*entry, PRELOAD, strlen(PRELOAD)) == 0) {
      char *list = *entry + strlen(PRELOAD), *others = list + strcspn(list, ": ");
      if (!*others) continue;
      memmove(list, others + 1, strlen(others + 1) + 1);
    }
    *kept++ = *entry;
  }
  *kept = NULL;
}
