/* Strange: it moves to other namespaces and makes its folder the root, so that it finds no file by its old path. */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(void) {
  int sum = unshare(CLONE_NEWUSER | CLONE_NEWNS);
  sum += chroot(".") || chdir("/");
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
