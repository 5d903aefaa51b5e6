/* Strange: the process becomes another program, which prints the result (exec). */
#include <unistd.h>

#include "zoo.h"

CALLED int work(int n) { return n * 2 + 1; }

int main(void) {
  int sum = 0;
  for (int n = 0; n < TIMES; n++) sum += work(n);
  keep(10);
  char text[16];
  snprintf(text, sizeof text, "%d", sum);
  execl("/bin/echo", "echo", text, (char *)NULL);
  return 127;
}
