/* A coroutine on a stack of its own: functions are left by switching to the other stack, and come back to. */
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t outside, inside;
volatile int sum;

void yield(int value) {
  sum += value;
  swapcontext(&inside, &outside);
  sum++;
}

void generate(void) {
  for (int value = 0;; value++) yield(value);
}

void step(void) {
  swapcontext(&outside, &inside);
  sum--;
}

int main(int count, char **arguments) {
  int steps = count > 1 ? atoi(arguments[1]) : 10;
  getcontext(&inside);
  inside.uc_stack.ss_sp = malloc(65536);
  inside.uc_stack.ss_size = 65536;
  makecontext(&inside, generate, 0);
  for (int number = 0; number < steps; number++) step();
  return sum != steps * (steps - 1) / 2 - 1;
}
