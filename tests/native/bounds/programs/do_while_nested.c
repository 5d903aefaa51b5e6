// class: O(n^2)
// why: n times m, each at least once
int do_while_nested(int n, int m) {
    int i = 0, j;
    do {
        j = 0;
        do {
            j++;
        } while (j < m);
        i++;
    } while (i < n);
    return i;
}
