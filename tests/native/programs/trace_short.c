/* Functions whose first instructions a tracer cannot replace by a call, beside one that it can. */
#include <stdio.h>

int add(int a, int b) { return a + b + 1; }
int passes(int n) { return add(n, n) + n; }
int sums(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i ^ n;
  return sum;
}

int main(void) {
  int sum = 0;
  for (int i = 0; i < 15; i++) sum += add(i, 2) + passes(i) + sums(i);
  printf("%d\n", sum);
  return 0;
}
