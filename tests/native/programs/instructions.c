/* Does as much work as the first argument says, under two callers, and ends as the second one says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void work(long n) {
  for (long i = 0; i < n; i++) sum += i ^ sum;
}

__attribute__((noinline)) static void seldom(long n) {
  work(n);
  sum++;
}

__attribute__((noinline)) static void often(long n) {
  for (int i = 0; i < 3; i++) work(n);
  sum++;
}

static int odd(int n);
__attribute__((noinline)) static int even(int n) {
  for (int i = 0; i < 20; i++) sum += i;
  return n == 0 ? 1 : odd(n - 1) + (int)(sum & 0);
}
__attribute__((noinline)) static int odd(int n) {
  for (int i = 0; i < 10; i++) sum += i;
  return n == 0 ? 0 : even(n - 1) + (int)(sum & 0);
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 10000;
  const char *end = argc > 2 ? argv[2] : "";
  char line[64] = "";
  if (!strcmp(end, "read") && fgets(line, sizeof line, stdin)) fputs(line, stdout);
  if (!strcmp(end, "fork")) {
    if (!fork()) {
      often(n);
      _exit(0);
    }
    wait(NULL);
  }
  seldom(n);
  often(n);
  sum += even(50);
  if (!strcmp(end, "abort")) abort();
  if (!strcmp(end, "kill")) raise(SIGKILL);
  if (!strcmp(end, "forever"))
    for (;;) sum++;
  fputs("done\n", stderr);
  return !strcmp(end, "fail") ? 3 : 0;
}
