/* Known sizes by every function that allocates; the argument says how many times, or
 * `quiet` for once without what debuggers of memory do not like. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;
static volatile size_t too_much = SIZE_MAX / 2;

static void keep(void *memory) { kept = memory; }

int main(int argc, char **argv) {
  int simple = argc > 1 && !strcmp(argv[1], "quiet"), rounds = argc > 1 && !simple ? atoi(argv[1]) : 1;
  for (int round = 0; round < rounds; round++) {
    void *memory = malloc(11);
    keep(memory);
    free(memory);
    memory = calloc(3, 7);
    keep(memory);
    memory = realloc(memory, 5000);
    keep(memory);
    if (!simple && realloc(memory, too_much)) return 2; /* fails: the memory is as before */
    memory = reallocarray(memory, 100, 70);
    keep(memory);
    free(memory);
    keep(memalign(64, 33));
    free(kept);
    keep(aligned_alloc(128, 256));
    free(kept);
    if (posix_memalign(&memory, 32, 45)) return 2;
    keep(memory);
    free(memory);
    keep(valloc(55));
    free(kept);
    if (!simple) {
      keep(pvalloc(66));
      free(kept);
    }
    keep(strdup("twelve bytes"));
    free(kept);
    if (asprintf((char **)&memory, "%d", 123456) < 0) return 2;
    free(memory);
    free(NULL);
    keep(malloc(0));
    free(kept);
    keep(malloc(77)); /* never freed */
  }
  return 0;
}
