// bound: 1 + max(n, 0)
// why: i takes each value from n down to 1
int for_down(int n) {
    for (int i = n; i > 0; i--)
        unknown();
    return n;
}
