/* Strange: functions are one or two instructions long, shorter than the jump that patches put into them. */
#include "zoo.h"

CALLED int next(int n) { return n + 1; }
CALLED int same(int n) { return n; }
CALLED void nothing(void) { __asm__ volatile(""); }
CALLED int behind(const int *numbers) { return numbers[1]; }

int main(void) {
  int sum = 0, numbers[2] = {0, 0};
  for (int n = 0; n < TIMES; n++) {
    numbers[1] = next(n + sum);
    sum = (sum + same(n) + behind(numbers)) & 0xffff;
    nothing();
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
