/* Strange: it ends by quick_exit, so that nothing runs that was registered for its end. */
#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  fflush(stdout);
  quick_exit(0);
}
