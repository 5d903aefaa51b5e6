/* Strange: it looks whether its own code is what was compiled, and says so where it is not. */
#include "zoo.h"

extern char __executable_start[];
#define BASE __executable_start

CALLED int work(int n) { return n * 2 + 1; }
CALLED unsigned checksum(const volatile unsigned char *code) {
  unsigned sum = 0;
  for (int n = 0; n < 4; n++) sum = sum * 31 + code[n];
  return sum;
}

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) {
    sum += work(n);
    keep(n + 1);
  }
  unsigned char compiled[4];
  FILE *file = fopen("/proc/self/exe", "rb");
  fseek(file, (long)((char *)work - BASE), SEEK_SET);
  int read = (int)fread(compiled, 1, 4, file);
  printf("%d %d %d %s\n", sum, kept, read, checksum(compiled) == checksum((unsigned char *)work) ? "same" : "changed");
  return 0;
}
