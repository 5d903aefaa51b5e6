/* Strange: the loader chooses among several functions of one name (ifunc). */
#include "zoo.h"

static CALLED int one_way(int n) { return n * 3; }
static CALLED int other_way(int n) { return n * 5; }
static int (*choose(void))(int) { return sizeof(long) == 8 ? one_way : other_way; }
int chosen(int n) __attribute__((ifunc("choose")));

CALLED int caller(int n) { return chosen(n) + 1; }

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += caller(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
