/* Strange: the process begins anew with the same program, twice (exec). */
#include <unistd.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(int count, char **arguments) {
  int left = atoi(arguments[1]), sum = 0;
  for (int n = 0; n < 10 * left; n++) sum += work(n);
  keep(left);
  printf("%d %d\n", left, sum);
  fflush(stdout);
  if (left > 1) {
    char next[12];
    snprintf(next, sizeof next, "%d", left - 1);
    execl(arguments[0], arguments[0], next, (char *)NULL);
    return 127;
  }
  return count != 2;
}
