/* Strange: exceptions leave functions, some of which have destructors to run. */
#include <stdexcept>

#include "zoo.h"

static int destroyed;
struct Guard {
  CALLED ~Guard() { destroyed++; }
};

CALLED int thrower(int n) {
  if (n % 2) throw std::runtime_error("odd");
  return n;
}
CALLED int middle(int n) {
  Guard guard;
  return thrower(n) + 1;
}
CALLED int catcher(int n) {
  try {
    return middle(n) + 1;
  } catch (const std::exception &) {
    return -1;
  }
}

int main() {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += catcher(n);
    keep(n + 1);
  }
  printf("%d %d %d\n", sum, destroyed, kept);
  return 0;
}
