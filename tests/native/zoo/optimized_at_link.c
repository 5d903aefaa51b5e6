/* Strange: two sources are optimised together while they are linked (LTO). */
#include "zoo.h"

int elsewhere(int n);

static CALLED int square(int n) { return n * n; }

CALLED int here(int n) { return square(n) + elsewhere(n + 1); }

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += here(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
