/* Strange: a function runs as the handler of a signal, on a stack of its own. */
#define _GNU_SOURCE
#include <signal.h>

#include "zoo.h"

static volatile int handled;

CALLED int count_up(int n) { return handled + n; }
CALLED void handler(int number) { handled = count_up(number > 0); }
CALLED int interrupted(int n) {
  raise(SIGUSR1);
  return n + handled;
}

int main(void) {
  static char stack[65536];
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  int sum = 0;
  sigaltstack(&own, NULL);
  sigaction(SIGUSR1, &action, NULL);
  for (int n = 0; n < TIMES; n++) {
    sum += interrupted(n);
    keep(n + 1);
  }
  printf("%d %d %d\n", sum, handled, kept);
  return 0;
}
