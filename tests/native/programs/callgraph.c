/* Each function calls, or does not call, others in another way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE __attribute__((noinline, noipa))

ALONE static int helper(int x) { return x * 3 + 1; }
ALONE int tail(int x) { return helper(x + 2); }
ALONE int unlikely(int x) {
    if (__builtin_expect(x > 1000, 0)) {
        fprintf(stderr, "too large: %d\n", x);
        abort();
    }
    return tail(x) * 2;
}
ALONE int chosen(int x, int y) {
    switch (x) {
        case 0: return helper(y) + 1;
        case 1: return tail(y) + 2;
        case 2: return unlikely(y) + 3;
        case 3: return y * 7;
        case 4: return puts("x") + 4;
        case 5: return y - 1;
        case 6: return (int)strtol("12", 0, y);
        case 7: return abs(y) + helper(y - 7);
        default: return 9;
    }
}
ALONE static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
ALONE int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
ALONE int odd(int n);
ALONE int even(int n) { return n == 0 ? 1 : odd(n - 1) + 0 * puts("e"); }
ALONE int odd(int n) { return n == 0 ? 0 : even(n - 1) + 0 * puts("o"); }
ALONE int never(int x) { return helper(x) + tail(x); }

int (*table[])(int) = {tail, helper};

static int (*resolved(void))(int) { return tail; }
int picked(int x) __attribute__((ifunc("resolved")));

int main(int argc, char **argv) {
    int numbers[4] = {4, 3, 2, 1};
    qsort(numbers, 4, sizeof *numbers, order);
    for (int i = 0; i < 9; i++)
        printf("%d\n", chosen(i, numbers[i % 4]));
    printf("%d %d %d %d\n", table[argc & 1](3), recursive(argc + 3), even(argc), picked(argc));
    return argc > 5 ? never(argc) : 0;
}
