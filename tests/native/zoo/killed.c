/* Strange: a signal ends the program in the middle of a function (abort). */
#include "zoo.h"

CALLED int work(int n) { return n * 2; }
CALLED int last(int n) {
  if (n == 380) abort();
  return n;
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  fflush(stdout);
  return last(sum);
}
