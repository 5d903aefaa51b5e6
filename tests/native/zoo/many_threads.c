/* Strange: 400 threads are there at one time. */
#include <pthread.h>

#include "zoo.h"

enum { THREADS = 400 };
static pthread_barrier_t all;

CALLED int step(int n) { return n * 2 + 1; }
CALLED void *work(void *number) {
  long sum = 0;
  pthread_barrier_wait(&all);
  for (int n = 0; n < 5; n++) sum += step(n);
  keep(1);
  return (void *)(sum + (long)number);
}

int main(void) {
  static pthread_t threads[THREADS];
  long sum = 0;
  pthread_barrier_init(&all, NULL, THREADS);
  for (long n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, work, (void *)n);
  for (int n = 0; n < THREADS; n++) {
    void *found;
    pthread_join(threads[n], &found);
    sum += (long)found;
  }
  printf("%ld\n", sum);
  return 0;
}
