// class: O(n^1)
// why: either limit ends it
int both_limits(int n, int m) {
    int i = 0;
    while (i < n && i < m)
        i++;
    return i;
}
