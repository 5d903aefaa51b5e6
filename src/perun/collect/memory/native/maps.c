#include "maps.h"

#include <string.h>

#include "system.h"

static const char *hexadecimal(const char *text, uint64_t *value) {
  *value = 0;
  for (;; text++) {
    unsigned digit;
    if (*text >= '0' && *text <= '9')
      digit = (unsigned)(*text - '0');
    else if (*text >= 'a' && *text <= 'f')
      digit = (unsigned)(*text - 'a') + 10;
    else
      return text;
    *value = *value << 4 | digit;
  }
}

/* A line: `start-end perm offset device inode      path`. */
static struct mapping parse(const char *line) {
  uint64_t start, end, offset;
  line = hexadecimal(line, &start);
  line = hexadecimal(line + (*line == '-'), &end);
  bool executable = strlen(line) > 5 && line[3] == 'x';
  bool writable = strlen(line) > 5 && line[1] == 'r' && line[2] == 'w';
  line = hexadecimal(line + (strlen(line) > 6 ? 6 : 0), &offset);
  for (int column = 0; column < 2; column++) {
    line += strspn(line, " ");
    line += strcspn(line, " ");
  }
  line += strspn(line, " ");
  return (struct mapping){(uintptr_t)start, (uintptr_t)end, offset, executable, writable, line};
}

bool maps_read(struct maps_buffer *buffer, bool (*each)(void *, const struct mapping *), void *argument) {
  int file = system_open("/proc/self/maps", O_RDONLY, 0);
  if (file < 0) return false;
  size_t have = 0;
  bool wanted = true;
  while (wanted) {
    long got = system_read(file, buffer->text + have, sizeof buffer->text - 1 - have);
    if (got <= 0) break;
    have += (size_t)got;
    char *line = buffer->text, *end;
    while (wanted && (end = memchr(line, '\n', have))) {
      *end = 0;
      struct mapping mapping = parse(line);
      wanted = each(argument, &mapping);
      have -= (size_t)(end + 1 - line);
      line = end + 1;
    }
    memmove(buffer->text, line, have);
  }
  system_close(file);
  return true;
}
