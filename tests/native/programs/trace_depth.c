/* Calls itself as often as the argument says. */
#include <stdlib.h>

int deep(int n) {
  volatile int left = n;
  return left ? deep(left - 1) + 1 : 0;
}

int main(int count, char **arguments) {
  int wanted = count > 1 ? atoi(arguments[1]) : 5000;
  return deep(wanted) != wanted;
}
