/* Strange: calls are nested 3001 deep, more than the kernel (64) and uftrace (1024) follow. */
#include "zoo.h"

CALLED int dive(int n) {
  volatile int here = n;
  if (n) here += dive(n - 1);
  return here % 1000;
}

int main(void) {
  int sum = dive(3000);
  for (int n = 0; n < TIMES; n++) keep(n + 1);
  printf("%d %d\n", sum, kept);
  return 0;
}
