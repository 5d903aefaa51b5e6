/* Threads that allocate at once, and free what others allocated: 8 threads, 20000 times each. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifndef ROUNDS
#define ROUNDS 20000
#endif
enum { THREADS = 8, SLOTS = 64 };

static _Atomic(void *) slots[SLOTS];

static void *work(void *seed) {
  unsigned state = (unsigned)(size_t)seed;
  for (int i = 0; i < ROUNDS; i++) {
    state = state * 1664525u + 1013904223u;
    void *other = atomic_exchange(&slots[state >> 26], malloc(1 + (state >> 20 & 255)));
    free(other);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < SLOTS; i++) free(slots[i]);
  return 0;
}
