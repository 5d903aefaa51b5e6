/* Strange: callers keep values in registers that any function may change, knowing that this one does not (ipa-ra). */
#include "zoo.h"

static CALLED int leaf(int n) { return n * 3 + 1; }

static CALLED int around(int a, int b, int c, int d, int e, int f) {
  int sum = leaf(a) * b;
  sum += leaf(sum) - c;
  sum ^= leaf(sum + d) + e;
  return sum + a + b * c + d * e + f;
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += around(n, sum & 7, n + 2, sum & 3, n + 4, n + 5);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
