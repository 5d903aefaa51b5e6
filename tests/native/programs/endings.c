/* 3 allocations of 1111 bytes, then an end of the kind that the argument names. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void on_signal(int number) {
  (void)number;
  _exit(9);
}

int main(int argc, char **argv) {
  static void *volatile kept[3]; /* reachable to the end */
  const char *how = argc > 1 ? argv[1] : "return";
  for (int i = 0; i < 3; i++) kept[i] = malloc(1111);
  if (!strcmp(how, "exit")) exit(5);
  if (!strcmp(how, "_exit")) _exit(6);
  if (!strcmp(how, "_Exit")) _Exit(6);
  if (!strcmp(how, "quick_exit")) quick_exit(7);
  if (!strcmp(how, "system call")) syscall(SYS_exit_group, 8);
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(how, "terminate")) kill(getpid(), SIGTERM);
  if (!strcmp(how, "crash")) *(volatile int *)(argv[0] ? (long)argc - 2 : 0) = 1;
  if (!strcmp(how, "handler")) {
    signal(SIGTERM, on_signal);
    kill(getpid(), SIGTERM);
  }
  if (!strcmp(how, "exec")) execlp("true", "true", (char *)NULL);
  return kept[2] ? 4 : 3;
}
