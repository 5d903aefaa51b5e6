// class: O(n^1)
// why: it does not run at all for small n
int guarded(int n) {
    int i = 0;
    if (n > 5)
        while (i < n)
            i++;
    return i;
}
