/* Strange: a table decides where in a function the processor goes on. */
#include "zoo.h"

static volatile int state = 1;

CALLED int dispatch(int kind, int n) {
  switch (kind) {
    case 0: return n + state;
    case 1: state += n; return 2;
    case 2: return n * state;
    case 3: state ^= n; return state;
    case 4: return n - state;
    case 5: state = n % 7; return 5;
    case 6: return state * 3;
    case 7: state -= 2; return n;
  }
  return -1;
}

CALLED int interpret(const unsigned char *code) {
  static const void *const labels[] = {&&add, &&twice, &&stop};
  int value = 0;
  goto *labels[*code];
add:
  value += 3;
  goto *labels[*++code];
twice:
  value *= 2;
  goto *labels[*++code];
stop:
  return value;
}

int main(void) {
  static const unsigned char program[] = {0, 1, 0, 1, 1, 0, 2};
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += dispatch(n % 9, n);
    sum += interpret(program + n % 5);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
