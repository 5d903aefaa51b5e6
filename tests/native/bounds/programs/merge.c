// class: O(n^1)
// why: each iteration takes an element from one of two sequences
int merge(int n, int m, int *a, int *b) {
    int i = 0, j = 0;
    while (i < n && j < m) {
        if (a[i] <= b[j])
            i++;
        else
            j++;
    }
    while (i < n)
        i++;
    while (j < m)
        j++;
    return i + j;
}
