/* Strange: it closes all files that it did not open, as daemons do. */
#define _GNU_SOURCE
#include <unistd.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(void) {
  int sum = close_range(3, ~0u, 0);
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
