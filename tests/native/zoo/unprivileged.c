/* Strange: it becomes another user while it runs, who may not write what this one may. */
#include <unistd.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(void) {
  int sum = geteuid() == 0 && (setgid(65534) || setuid(65534));
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
