/* Strange: a library is loaded into a namespace of its own, with a C library and an allocator of its own (dlmopen). */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "zoo.h"

int main(int count, char **words) {
  void *library = dlmopen(LM_ID_NEWLM, words[count - 1], RTLD_NOW);
  int (*hold)(int) = (int (*)(int))dlsym(library, "hold");
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += hold(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
