// class: O(n^1)
// why: it runs up to the larger limit
int either_limit(int n, int m) {
    int i = 0;
    while (i < n || i < m)
        i++;
    return i;
}
