/* The recorder under load, without its interposer, such that a sanitizer can look at it: threads that record what
 * they would allocate, through stacks of many shapes; forks; the end. Argument: rounds of each thread. Nothing is
 * really allocated: the allocators of sanitizers may wait for ever in the child of a process with threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder.h"

static int rounds;

static __attribute__((noinline)) void *allocate(size_t size) {
  struct call call;
  static uintptr_t next = 4096;
  void *memory = (void *)__atomic_fetch_add(&next, (size + 31) & ~(uintptr_t)15, __ATOMIC_RELAXED);
  if (recorder_enter(&call, HERE)) {
    recorder_write(&call, RECORD_MALLOC, memory, size);
    recorder_leave(&call);
  }
  return memory;
}

static __attribute__((noinline)) void release(void *memory) {
  struct call call;
  if (recorder_enter(&call, HERE)) {
    recorder_write(&call, RECORD_REALLOC_RELEASE, memory, 0);
    recorder_leave(&call);
    recorder_enter_again(&call);
    recorder_write(&call, RECORD_REALLOC_FAILED, memory, 0);
    recorder_leave(&call);
  }
  if (recorder_enter(&call, HERE)) {
    recorder_write(&call, RECORD_FREE, memory, 0);
    recorder_leave(&call);
  }
}

static __attribute__((noinline)) void *descend(unsigned path, int depth, size_t size) {
  void *volatile memory;
  if (depth == 0) return allocate(size);
  if (path & 1)
    memory = descend(path >> 1, depth - 1, size);
  else
    memory = descend(path >> 1 | path << 31, depth - 1, size);
  return memory;
}

static void *work(void *seed) {
  unsigned state = (unsigned)(size_t)seed;
  void *held[256] = {NULL};
  for (int i = 0; i < rounds; i++) {
    state = state * 1664525u + 1013904223u;
    void **slot = &held[state >> 24];
    if (*slot) release(*slot);
    size_t size = state >> 4 & 1 ? state >> 8 & 4095 : (size_t)1 << (state >> 8 & 15);
    *slot = descend(state >> 9, (int)(state >> 5 & 15), size);
    if (i % 4096 == 0) recorder_unloaded();
  }
  for (int i = 0; i < 256; i++)
    if (held[i]) release(held[i]);
  return NULL;
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? atoi(argv[1]) : 1000;
  recorder_ready();
  work((void *)(size_t)99);
  pthread_t threads[4];
  for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  pid_t child = fork();
  if (child == 0) {
    work((void *)(size_t)7);
    recorder_end(RECORD_QUICK_EXITED, true);
    release(allocate(1));
    _exit(0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  int status = 1;
  waitpid(child, &status, 0);
  recorder_end(RECORD_EXITED, true);
  for (int i = 0; i < 3000; i++) release(allocate(1));
  return status != 0;
}
