/* The program of which there are several builds: what is strange about each is how it is compiled and linked. */
#ifndef ORDINARY_H
#define ORDINARY_H
#include "zoo.h"

static CALLED int square(int n) { return n * n; }

static CALLED int squares(int count) {
  int sum = 0;
  for (int n = 0; n < count; n++) sum += square(n);
  keep(count + 1);
  return sum;
}

int main(void) {
  long sum = 0;
  for (int n = 0; n < TIMES; n++) sum += squares(n);
  printf("%ld %d\n", sum, kept);
  return 0;
}
#endif
