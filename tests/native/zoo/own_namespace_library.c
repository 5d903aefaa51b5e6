/* What own_namespace loads. */
#include <stdlib.h>

__attribute__((noinline)) int hold(int n) {
  volatile char *block = (volatile char *)malloc(n + 1);
  block[0] = n;
  n = block[0] + 1;
  free((void *)block);
  return n;
}
