/* Leaves functions by other ways than their returns: the first argument says by which. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void leave(int n) {
  if (n > 2) pthread_exit((void *)7);
  puts("once more");
}

void wait_for_the_end(void) {
  for (;;) pause();
}

void *work(void *argument) {
  if (argument) wait_for_the_end();
  for (int n = 0; n < 9; n++) leave(n);
  return NULL;
}

int main(int count, char **arguments) {
  int cancels = count > 1 && !strcmp(arguments[1], "cancel");
  void *result = NULL;
  pthread_t thread;
  pthread_create(&thread, NULL, work, cancels ? &thread : NULL);
  if (cancels) pthread_cancel(thread);
  pthread_join(thread, &result);
  printf("%ld\n", (long)result);
  return 0;
}
