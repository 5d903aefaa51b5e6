/* Strange: functions begin with vector instructions that the kernel takes for jumps, returns and others. */
#include "zoo.h"

#ifdef __x86_64__
#define FUNCTION(name, code) \
  __asm__(".text\n.type " name ",@function\n.globl " name "\n" name ":\n" code "\nret\n.size " name ",.-" name)

/* A conditional jump, a return, output to a port, and one that is left alone. */
FUNCTION("spread", "vpshufd $0x55, %xmm0, %xmm1\nvmovaps %xmm1, %xmm0");
FUNCTION("equal", "vcmpps $0, %xmm0, %xmm1, %xmm2\nvmovaps %xmm2, %xmm0");
FUNCTION("copied", "vmovdqa %xmm0, %xmm1\nvmovaps %xmm1, %xmm0");
FUNCTION("sum", "vaddps %xmm0, %xmm1, %xmm2\nvmovaps %xmm2, %xmm0");
#endif

typedef float vector __attribute__((vector_size(16)));
vector spread(vector a);
vector equal(vector a, vector b);
vector copied(vector a);
vector sum(vector a, vector b);

int main(void) {
  vector all = {1, 2, 3, 4};
  int equals = 0;
  for (int n = 0; n < TIMES; n++) {
    vector next = {(float)n, (float)(n + 1), 1, 1};
    all = sum(copied(spread(all)), next);
    vector same = equal(all, next);
    equals += ((int *)&same)[0] != 0;
    keep(n + 1);
  }
  printf("%.1f %.1f %.1f %d %d\n", all[0], all[1], all[3], equals, kept);
  return 0;
}
