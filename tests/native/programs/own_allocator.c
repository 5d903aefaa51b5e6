/* A program with its own malloc, as one that an allocator is linked into statically: with -DHIDDEN under other names that
 * no library sees. Memory comes from one block and is never returned. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char memory[1 << 22];
static size_t used;
static int released;

#ifdef HIDDEN
#define NAME(name) je_##name
#define VISIBILITY __attribute__((visibility("hidden")))
#else
#define NAME(name) name
#define VISIBILITY
#endif

VISIBILITY void *NAME(malloc)(size_t size) {
  size_t start = (used + 31) / 16 * 16;
  if (start + size > sizeof memory) return NULL;
  memcpy(memory + start - sizeof size, &size, sizeof size);
  used = start + size;
  return memory + start;
}

VISIBILITY void NAME(free)(void *block) { released += block != NULL; }

VISIBILITY void *NAME(calloc)(size_t count, size_t size) { return NAME(malloc)(count * size); }

VISIBILITY void *NAME(realloc)(void *block, size_t size) {
  void *new = NAME(malloc)(size);
  size_t before = 0;
  if (block) memcpy(&before, (char *)block - sizeof before, sizeof before);
  if (new && block) memcpy(new, block, before < size ? before : size);
  return new;
}

int main(void) {
  char *block = NAME(malloc)(1001);
  strcpy(block, "kept");
  for (int i = 0; i < 10; i++) NAME(free)(NAME(calloc)(7, 11));
#ifndef HIDDEN
  block = reallocarray(block, 3, 1000); /* of the C library, which calls the realloc above */
#endif
  block = NAME(realloc)(block, 5000);
  void *plain = strdup("of the C library");
  printf("%s %s %d\n", block, (char *)plain, released);
  free(plain);
  return 0;
}
