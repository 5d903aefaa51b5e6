// bound: 1 + 2 × max(n, 0)
// why: each element is pushed once, so that all runs of the inner loop together pop n at most
int amortised_stack(int n) {
    int x = 0;
    while (n > 0) {
        n--;
        x++;
        while (x > 0 && NONDET)
            x--;
    }
    return x;
}
