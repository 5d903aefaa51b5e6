/* Load plug-ins one after the other, which may get the same addresses, and let each allocate. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  for (int round = 0; round < 3; round++)
    for (int i = 1; i < argc; i++) {
      void *handle = dlopen(argv[i], RTLD_NOW);
      if (!handle) return 2;
      void *(*allocate)(void) = (void *(*)(void))dlsym(handle, "plugin_allocate");
      free(allocate());
      dlclose(handle);
    }
  return 0;
}
