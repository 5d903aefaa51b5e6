/* Threads that call the same functions at the same time. */
#include <pthread.h>
#include <stdlib.h>

#define THREADS 4

static int calls = 1000;

int inner(int value) { return value + 1; }

int outer(int value) {
  for (int again = 0; again < 3; again++) value = inner(value);
  return value;
}

void *work(void *argument) {
  volatile int value = 0;
  for (int call = 0; call < calls; call++) value = outer(value);
  return argument;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  if (count > 1) calls = atoi(arguments[1]);
  for (int number = 0; number < THREADS; number++) pthread_create(&threads[number], NULL, work, NULL);
  for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
  return 0;
}
