/* Has a function of the same name as another source. */
#include "callgraph_same.h"

__attribute__((noinline, noipa)) static int compare(int x) { return x ^ 5; }
int second(int x) { return compare(x) + 2; }
