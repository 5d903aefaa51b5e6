/* Calls of a small function: prints the nanoseconds of CPU time of one, in the best of many batches; to a file where
 * the second argument names one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 20

__attribute__((noinline)) int leaf(int value) {
#ifdef SAVES
  __asm__ volatile("" ::: "rbx"); /* as functions of more than this do: begins with `push` */
#else
  __asm__ volatile("");
#endif
#ifdef DECIDES
  if (value == 0x7fffffff) return 0; /* as functions that have something to do only sometimes: `cmp` and a jump */
#endif
  return (value * 3 + (value >> 5)) ^ 0x1234567; /* uftrace needs a few bytes to patch */
}

#if defined(__x86_64__)
#define COUNTER() __builtin_ia32_rdtsc()
#else
#define COUNTER() 0
#endif

static __attribute__((no_instrument_function)) double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

__attribute__((no_instrument_function)) int main(int count, char **arguments) {
  long calls = atol(arguments[1]) / BATCHES;
  double best = 1e9, counter = 1e9;
  volatile unsigned long long ticks = 0;
  for (int batch = 0; batch < BATCHES; batch++) {
    int value = 0;
    double start = now();
    for (long call = 0; call < calls; call++) value = leaf(value);
    double taken = (now() - start) / (double)calls;
    if (taken < best) best = taken;
    start = now();
    for (long call = 0; call < 100000; call++) ticks += COUNTER();
    taken = (now() - start) / 100000;
    if (taken < counter) counter = taken;
  }
  FILE *out = count > 2 ? fopen(arguments[2], "w") : stdout;
  if (!out) return 1;
  fprintf(out, "%.2f %.2f\n", best, counter);
  return count < 2;
}
