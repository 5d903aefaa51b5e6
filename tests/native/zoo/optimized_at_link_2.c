/* The other source of optimized_at_link.c; both have a function of the same name. */
static __attribute__((noinline)) int square(int n) { return n * n + 1; }

__attribute__((noinline)) int elsewhere(int n) { return square(n) * 2; }
