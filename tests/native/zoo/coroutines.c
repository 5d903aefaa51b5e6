/* Strange: three coroutines take turns, each on a stack of its own and in the middle of a function (ucontext). */
#include <ucontext.h>

#include "zoo.h"

static ucontext_t scheduler, coroutines[3];
static int current, sum, done;

CALLED int pause_here(int n) {
  swapcontext(&coroutines[current], &scheduler);
  return n + 1;
}
CALLED int step(int n) { return pause_here(n) * 2; }
CALLED void routine(void) {
  for (int n = 0; n < 5; n++) sum += step(n) * (current + 1);
  done++;
}

int main(void) {
  static char stacks[3][65536];
  for (int n = 0; n < 3; n++) {
    getcontext(&coroutines[n]);
    coroutines[n].uc_stack.ss_sp = stacks[n];
    coroutines[n].uc_stack.ss_size = sizeof stacks[n];
    coroutines[n].uc_link = &scheduler;
    makecontext(&coroutines[n], routine, 0);
  }
  for (int turn = 0; done < 3; turn++) {
    current = turn % 3;
    swapcontext(&scheduler, &coroutines[current]);
    keep(turn + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
