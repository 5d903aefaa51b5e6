/* Strange: forked processes call the same functions. */
#include <sys/wait.h>
#include <unistd.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }
CALLED int in_child(int count) {
  int sum = 0;
  for (int n = 0; n < count; n++) sum += work(n);
  return sum;
}
CALLED int spawn(int count) {
  int status;
  pid_t child = fork();
  if (child == 0) exit(in_child(count));
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

int main(void) {
  int sum = spawn(5) + spawn(10);
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
