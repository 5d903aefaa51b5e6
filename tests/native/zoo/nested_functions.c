/* Strange: functions lie in functions, and are called by code that the compiler writes onto the stack. */
#include "zoo.h"

CALLED int apply(int (*function)(int), int n) { return function(n) + 1; }
CALLED int outer(int base) {
  __attribute__((noinline)) int inner(int n) { return n + base; }
  return apply(inner, base);
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += outer(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
