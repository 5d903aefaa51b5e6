/* Strange: four threads call the same functions at the same time. */
#include <pthread.h>

#include "zoo.h"

static __thread int own;

CALLED int step(int n) { return own += n; }

CALLED void *work(void *number) {
  for (int n = 0; n < TIMES; n++) step(n * (int)(long)number);
  return (void *)(long)own;
}

int main(void) {
  pthread_t threads[4];
  long sum = 0;
  for (long n = 0; n < 4; n++) pthread_create(&threads[n], NULL, work, (void *)(n + 1));
  for (int n = 0; n < 4; n++) {
    void *result;
    pthread_join(threads[n], &result);
    sum += (long)result;
    keep(n + 1);
  }
  printf("%ld %d\n", sum, kept);
  return 0;
}
