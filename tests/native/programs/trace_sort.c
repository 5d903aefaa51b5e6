/* A sort that takes the square of the length; the length is a parameter. */
#include <stdlib.h>

void selection_sort(int *values, size_t n) {
  for (size_t at = 0; at + 1 < n; at++) {
    size_t least = at;
    for (size_t other = at + 1; other < n; other++)
      if (values[other] < values[least]) least = other;
    int value = values[at];
    values[at] = values[least];
    values[least] = value;
  }
}

static void fill(int *values, size_t n) {
  unsigned state = 12345;
  for (size_t at = 0; at < n; at++) values[at] = (int)((state = state * 1103515245u + 12345u) >> 8);
}

int main(int count, char **arguments) {
  size_t most = count > 1 ? (size_t)atoi(arguments[1]) : 400;
  int *values = malloc(most * sizeof *values);
  for (size_t n = 10; n <= most; n += 10)
    for (int again = 0; again < 3; again++) {
      fill(values, n);
      selection_sort(values, n);
    }
  free(values);
  return 0;
}
