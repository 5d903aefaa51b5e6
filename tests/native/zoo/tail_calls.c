/* Strange: functions end with a jump to another one, so that several end by one return. */
#include "zoo.h"

static volatile int limit = 3;

CALLED int third(int n) { return n % limit; }
CALLED int second(int n) { return third(n + 1); }
CALLED int first(int n) { return second(n * 2); }

CALLED int is_odd(int n);
CALLED int is_even(int n) { return n == 0 ? limit : is_odd(n - 1); }
CALLED int is_odd(int n) { return n == 0 ? limit + 1 : is_even(n - 1); }

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += first(n);
    keep(n + 1);
  }
  sum += is_even(30);
  printf("%d %d\n", sum, kept);
  return 0;
}
