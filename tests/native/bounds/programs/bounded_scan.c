// class: O(n^1)
// why: the length ends it where the memory does not
int bounded_scan(int n, int *s, int c) {
    while (n > 0 && *s != c) {
        s++;
        n--;
    }
    return n;
}
