/* Strange: parameters are on the stack, and the number of them differs from call to call. */
#include <stdarg.h>

#include "zoo.h"

CALLED int ninth(int a, int b, int c, int d, int e, int f, int g, int h, int size) {
  return a - b + c - d + e - f + g - h + size;
}
CALLED int sum_of(int count, ...) {
  va_list list;
  int sum = 0;
  va_start(list, count);
  for (int n = 0; n < count; n++) sum += va_arg(list, int) + (int)va_arg(list, double);
  va_end(list);
  return sum;
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += ninth(n, 1, n, 2, n, 3, n, 4, n);
    sum += n % 2 ? sum_of(1, n, 0.5 + n) : sum_of(5, n, 1.0, n, 2.0, n, 3.0, n, 4.0, n, 9.5);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
