/* The library of plugin.c. */
static int calls;

static __attribute__((noinline)) int helper(int n) { return n + ++calls; }

int increase(int n) { return helper(n) * 2; }
