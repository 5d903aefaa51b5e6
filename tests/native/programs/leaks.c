/* Blocks that can be reached in every way, and lost ones; as many threads as the argument says hold some meanwhile. Ends
 * by `_exit` with the further argument `_exit`, by a signal with `abort`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
  struct node *next;
  char bytes[24];
};

/* Not static, lest the compiler leaves out what nobody reads. */
struct node *of_data, *initialised = (struct node *)&of_data;
char *inside;
__thread void *of_thread;
char **table;
static volatile int ready;

static struct node *list(int length) {
  struct node *first = NULL;
  for (int i = 0; i < length; i++) {
    struct node *node = malloc(sizeof *node);
    node->next = first;
    first = node;
  }
  return first;
}

static __attribute__((noinline)) void allocate(void) {
  of_data = list(10);
  initialised = list(3);
  inside = (char *)malloc(100) + 50;
  of_thread = malloc(77);
  table = malloc(300000); /* the kernel maps it for itself */
  table[5] = malloc(64);
  table[6] = calloc(1, 200000);
  if (!list(5)) abort(); /* lost: one definitely, four indirectly */
  struct node *one = list(1), *other = list(1);
  one->next = other;
  other->next = one; /* a lost cycle */
  void *volatile lost = malloc(11);
  lost = calloc(1, 210000);
  lost = malloc(24);
  free(realloc(lost, 4000));
}

static __attribute__((noinline)) int wipe(void) { /* what is left on the stack */
  volatile char bytes[8192];
  memset((void *)bytes, 0, sizeof bytes);
  return bytes[7];
}

static void *work(void *number) {
  void *volatile of_stack = malloc(1000 + (size_t)number);
  of_thread = malloc(2000 + (size_t)number);
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
  return of_stack;
}

int main(int argc, char **argv) {
  long threads = argc > 1 ? atol(argv[1]) : 0;
  allocate();
  for (long i = 0; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void *)i)) return 2;
  }
  while (ready < threads) usleep(500);
  puts("done");
  fflush(stdout);
  if (wipe()) return 3;
  if (argc > 2 && !strcmp(argv[2], "_exit")) _exit(0);
  if (argc > 2) abort();
  return 0;
}
