/* Allocations at depths up to the argument, through frames of many shapes, in signal handlers too. */
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

static void on_signal(int number) {
  kept = malloc((size_t)number);
  free(kept);
}

static __attribute__((noinline)) int wide(int depth);

static __attribute__((noinline)) int plain(int depth) {
  if (depth == 0) {
    kept = malloc(88);
    free(kept);
    return 0;
  }
  return wide(depth - 1) + 1;
}

static __attribute__((noinline)) int aligned(int depth) {
  _Alignas(64) volatile char room[64];
  room[0] = (char)depth;
  return plain(depth) + room[0] - room[0];
}

static __attribute__((noinline)) int wide(int depth) {
  volatile char room[3000];
  char *more = alloca((size_t)(depth % 7 + 1) * 16);
  memset(more, depth, 16);
  room[depth] = more[0];
  return (depth % 3 ? plain(depth) : aligned(depth)) + room[depth] - more[0];
}

int main(int argc, char **argv) {
  int depth = argc > 1 ? atoi(argv[1]) : 100;
  signal(SIGUSR1, on_signal);
  for (int i = 0; i <= depth; i++) {
    if (plain(i) < 0) return 1;
    if (i % 10 == 0) raise(SIGUSR1);
  }
  return 0;
}
