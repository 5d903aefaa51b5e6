/* Strange: the first thread ends by pthread_exit while others go on. */
#include <pthread.h>

#include "zoo.h"

static pthread_t first;

CALLED int step(int n) { return n * 2 + 1; }
CALLED void *work(void *unused) {
  int sum = 0;
  pthread_join(first, NULL);
  for (int n = 0; n < TIMES; n++) {
    sum += step(n);
    keep(n + 1);
  }
  printf("%d %d\n", sum, kept);
  exit(0);
}

int main(void) {
  pthread_t other;
  first = pthread_self();
  pthread_create(&other, NULL, work, NULL);
  pthread_exit(NULL);
}
