/* Floating numbers and vectors as parameters and results, also inside structures, beside functions without them. */
#include <stdarg.h>
#include <stdio.h>

struct mixed {
  double weight;
  int number;
};
struct point {
  float x, y;
};
typedef int vector __attribute__((vector_size(16)));

double scale(double x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x;
  return sum;
}

int rounded(double x) { return (int)(x + 0.5) + 1; }

double half(int n) {
  double x = n;
  for (int i = 0; i < 2; i++) x /= 2;
  return x;
}

int of_mixed(struct mixed one) { return one.weight > 1 ? one.number : -one.number; }

struct point point_of(int n) {
  struct point made = {n, 2 * n};
  return made;
}

vector doubled(vector one) { return one + one; }

int sum_of(int count, ...) {
  va_list given;
  double sum = 0;
  va_start(given, count);
  for (int i = 0; i < count; i++) sum += va_arg(given, double);
  va_end(given);
  return (int)sum;
}

int whole(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i ^ n;
  return sum;
}

long longer(long *place, int n) {
  for (int i = 0; i < n; i++) *place += i;
  return *place;
}

int main(void) {
  double sum = 0;
  long place = 0;
  int number = 0;
  vector lanes = {1, 2, 3, 4};
  for (int i = 0; i < 20; i++) {
    sum += scale(1.5, i) + half(i) + point_of(i).y;
    number += rounded(1.2 * i) + of_mixed((struct mixed){i, i}) + sum_of(2, 1.5, 2.0 * i) + whole(i);
    lanes = doubled(lanes);
    longer(&place, i);
  }
  printf("%.1f %d %d %ld %.1f\n", sum, number, lanes[1], place, scale(1.5, 210));
  return 0;
}
