/* Strange: longjmp leaves two functions at once. */
#include <setjmp.h>

#include "zoo.h"

static jmp_buf back;

CALLED int thrower(int n) {
  if (n % 2) longjmp(back, n + 1);
  return n;
}
CALLED int middle(int n) { return thrower(n) + 1; }
CALLED int catcher(int n) {
  int value = setjmp(back);
  return value ? -value : middle(n);
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += catcher(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
