/* Strange: parameters and results are vectors, which are in wide registers where the processor has these. */
#include "zoo.h"
#ifdef __AVX__
#define BYTES 32
#else
#define BYTES 16
#endif
typedef float vector __attribute__((vector_size(BYTES)));
typedef int whole __attribute__((vector_size(16)));
#define LANES ((int)(BYTES / sizeof(float)))

CALLED vector add(vector a, vector b) { return a + b; }
CALLED whole shift(whole a, int count) { return a + count; }

int main(void) {
  vector sum = {0}, step;
  whole others = {0};
  for (int lane = 0; lane < LANES; lane++) step[lane] = (float)(lane % 4 + 1);
  for (int n = 0; n < TIMES; n++) {
    sum = add(sum, step);
    others = shift(others, n);
    keep(n + 1);
  }
  printf("%.1f %.1f %.1f %d %d\n", sum[0], sum[3], sum[LANES - 1], others[3], kept);
  return 0;
}
