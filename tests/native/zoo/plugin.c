/* Strange: functions are in a library that is loaded, unloaded and loaded again while the program runs (dlopen). */
#include <dlfcn.h>

#include "zoo.h"

CALLED int with_plugin(const char *path, int from) {
  void *library = dlopen(path, RTLD_NOW);
  if (!library) return -1;
  int (*increase)(int) = (int (*)(int))dlsym(library, "increase");
  int sum = 0;
  for (int n = from; n < from + TIMES / 2; n++) sum += increase(n);
  dlclose(library);
  return sum;
}

int main(int count, char **arguments) {
  int sum = 0;
  for (int turn = 0; turn < 2; turn++) {
    sum += with_plugin(arguments[1], turn * 100);
    keep(turn + 1);
  }
  printf("%d %d\n", sum, kept);
  return count != 2;
}
