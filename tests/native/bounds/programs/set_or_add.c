// class: O(n^2)
// why: x is m or one more each time, and not kept: n times m
int set_or_add(int n, int m) {
    int x = m;
    while (n > 0) {
        n--;
        if (NONDET)
            x = m;
        while (x > 0 && NONDET)
            x--;
    }
    return x;
}
