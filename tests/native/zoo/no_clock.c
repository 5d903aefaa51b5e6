/* Strange: reading the time stamp counter is forbidden to it, so that who reads it in it is killed (PR_SET_TSC). */
#include <sys/prctl.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(void) {
  int sum = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
