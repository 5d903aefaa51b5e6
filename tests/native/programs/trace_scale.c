/* A floating number as a parameter and as a result: with its vector registers lost the sum is 0.0. */
#include <stdio.h>

double scale(double x, int n) { return x * n; }

int main(void) {
  double sum = 0;
  for (int i = 0; i < 20; i++) sum += scale(1.5, i) + 1.5;
  printf("%.1f\n", sum);
  return 0;
}
