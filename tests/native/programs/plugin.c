/* A plug-in that allocates `amount` bytes in a function of its own. */
#include <stdlib.h>

void *plugin_allocate(void) {
  void *volatile memory = malloc(AMOUNT);
  return memory;
}
