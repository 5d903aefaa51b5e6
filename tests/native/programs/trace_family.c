/* Calls functions in a process, in its child and in a grandchild of a session of its own, until somebody ends them. */
#include <unistd.h>

void step(void) { usleep(1000); }

int main(void) {
  if (!fork())
    if (!fork()) {
      setsid();
      if (fork())
        return 0; /* so that nobody waits for the grandchild */
    }
  for (;;)
    step();
}
