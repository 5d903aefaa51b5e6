// class: O(n^2)
// why: r begins at m for each of n
int set_again(int n, int m) {
    while (n > 0) {
        int r = m;
        n--;
        while (r > 0)
            r--;
    }
    return n;
}
