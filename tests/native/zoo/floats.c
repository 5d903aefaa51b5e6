/* Strange: parameters and results are floating point, in registers that a recorder easily forgets to save. */
#include "zoo.h"

CALLED double scale(double x, int n) { return x * n + 0.5; }
CALLED float halve(float x) { return x / 2; }
CALLED long double wide(long double x, int n) { return x * n; }

int main(void) {
  double sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += scale(1.5, n);
    sum += halve((float)n);
    sum += (double)wide(0.25L, n);
    keep(n + 1);
  }
  printf("%.3f %d\n", sum, kept);
  return 0;
}
