/* Strange: it is linked statically without a C library, and has no part that may be written. */
#include <asm/unistd.h>

__attribute__((noinline)) static int square(volatile int n) { return n * n; }
__attribute__((noinline)) static int squares(int count) {
  int sum = 0;
  for (int n = 0; n < count; n++) sum += square(n);
  return sum;
}

void _start(void) {
  volatile int sum = 0;
  for (int n = 0; n < 20; n++) sum += squares(n);
  __asm__ volatile("syscall" ::"a"(__NR_exit_group), "D"(sum == 0) : "memory", "rcx", "r11");
}
