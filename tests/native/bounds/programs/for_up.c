// bound: 1 + max(n, 0)
// why: i takes each value from 0 below n
int for_up(int n) {
    for (int i = 0; i < n; i++)
        unknown();
    return n;
}
