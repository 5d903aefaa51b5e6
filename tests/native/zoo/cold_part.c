/* Strange: the compiler moves the unlikely half of a function elsewhere, which has no entry of its own. */
#include "zoo.h"

static volatile int failures;

static CALLED __attribute__((cold)) void complain(int n) { failures += n; }

CALLED int decide(int n) {
  if (__builtin_expect(n % 4 == 0, 0)) {
    complain(n);
    return failures * 2;
  }
  return n + 1;
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += decide(n);
    keep(n + 1);
  }
  printf("%d %d %d\n", sum, failures, kept);
  return 0;
}
