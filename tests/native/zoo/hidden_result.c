/* Strange: results are structures, for which the caller passes a hidden pointer before the first parameter. */
#include "zoo.h"

struct large {
  long values[6];
};
struct pair {
  long low;
  double high;
};

CALLED struct large fill(int size) {
  struct large made;
  for (int n = 0; n < 6; n++) made.values[n] = (long)size * n;
  return made;
}
CALLED struct pair split(int size, double x) { return (struct pair){size, x / 2}; }
CALLED long total(struct large all, int size) { return all.values[1] + all.values[5] + size; }

int main(void) {
  long sum = 0;
  for (int n = 0; n < TIMES; n++) {
    struct pair halves = split(n, n);
    sum += total(fill(n), n) + halves.low + (long)(halves.high * 2);
    keep(n + 1);
  }
  printf("%ld %d\n", sum, kept);
  return 0;
}
