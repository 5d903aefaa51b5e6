/* Strange: children run in the memory of their parent until they become another program (vfork). */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "zoo.h"

CALLED void in_child(int n) {
  if (n % 2) _exit(n);
  execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
  _exit(127);
}
CALLED int spawn(int n) {
  int status;
  pid_t child = vfork();
  if (child == 0) in_child(n);
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < 6; n++) {
    sum += spawn(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
