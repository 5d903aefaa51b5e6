/* Threads with the smallest stacks that are allowed, which allocate. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static void *work(void *nothing) {
  for (int i = 0; i < 60000; i++) {
    void *volatile memory = malloc(1 + (unsigned)i * 7919u % 3000);
    free(memory);
  }
  return nothing;
}

int main(void) {
  pthread_t threads[2];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN)) return 2;
  for (int i = 0; i < 2; i++)
    if (pthread_create(&threads[i], &attributes, work, NULL)) return 3;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
