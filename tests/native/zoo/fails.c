/* Strange: the program fails, after it has said why. */
#include "zoo.h"

CALLED int work(int n) { return n * 2; }

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  fprintf(stderr, "too much: %d\n", sum);
  return 3;
}
