/* Strange: the compiler drops and changes parameters of functions that it knows all calls of (constprop, isra). */
#include "zoo.h"

struct list {
  int size, unused;
};

static CALLED int half_used(int unused, const struct list *list, int factor) {
  volatile int once = list->size;
  return once * factor + 1;
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    struct list list = {n, 7};
    sum += half_used(n * 9, &list, 4);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  return 0;
}
