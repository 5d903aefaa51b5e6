/* Strange: functions are called before main begins and after it has ended. */
#include "zoo.h"

static int early;

CALLED int work(int n) { return n + 2; }
static __attribute__((constructor)) void before(void) {
  for (int n = 0; n < 5; n++) early += work(n);
}
static __attribute__((destructor)) void after(void) { printf("after %d\n", work(40)); }
static void at_exit(void) { printf("at exit %d\n", work(30)); }

int main(void) {
  int sum = early;
  atexit(at_exit);
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
