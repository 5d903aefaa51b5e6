/* Recursion, of one function and of two; and as deep as the stack allows. */
#include <stdlib.h>

unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

int is_odd(unsigned n);
int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }

unsigned deep(unsigned n) { return n == 0 ? 0 : 1 + deep(n - 1) / 2; }

int main(int count, char **arguments) {
  unsigned depth = count > 1 ? (unsigned)atoi(arguments[1]) : 1000;
  volatile unsigned sum = fibonacci(15) + (unsigned)is_even(10);
  sum += deep(depth);
  return 0;
}
