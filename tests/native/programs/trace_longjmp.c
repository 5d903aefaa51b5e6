/* Frames that are left by longjmp, from calls of one place and of several. */
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf back;

void thrower(int value) {
  if (value % 2) longjmp(back, 1);
}

void middle(int value) {
  thrower(value);
  __asm__ volatile("" ::: "memory");
}

int large(int value) {
  volatile char room[512];
  room[value % 512] = (char)value;
  return room[value % 512];
}

int after(int value) { return value + 1; }

int catcher(int value) {
  if (setjmp(back)) return after(value);
  middle(value);
  return large(value);
}

int main(int count, char **arguments) {
  int most = count > 1 ? atoi(arguments[1]) : 100;
  volatile int sum = 0;
  for (int value = 0; value < most; value++) sum += catcher(value);
  for (int value = 0; value < most; value++) {
    if (!setjmp(back)) middle(value);
    sum += after(value);
  }
  return 0;
}
