/* A parent that allocates 101 bytes, a forked child 202, a forked child that executes this program again, which
 * allocates 303; and children made without the C library knowing. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static void *volatile kept;

static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "again")) {
    kept = malloc(303);
    return 0;
  }
  kept = malloc(101);
  int failed = 0;
  pid_t child = fork();
  if (child == 0) {
    kept = malloc(202);
    exit(0);
  }
  failed |= wait_for(child);
  char *arguments[] = {argv[0], "again", NULL};
  child = vfork();
  if (child == 0) {
    execv(argv[0], arguments);
    _exit(1);
  }
  failed |= wait_for(child);
  child = vfork();
  if (child == 0) _exit(0);
  failed |= wait_for(child);
  if (posix_spawn(&child, argv[0], NULL, NULL, arguments, environ)) return 2;
  failed |= wait_for(child);
  child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    kept = malloc(404);
    _exit(0);
  }
  failed |= wait_for(child);
  kept = malloc(105);
  return failed != 0;
}
