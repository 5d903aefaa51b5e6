// class: O(n^1)
// why: the limit is the larger of two inputs
int larger(int a, int b) {
    int n = a > b ? a : b, i;
    for (i = 0; i < n; i++)
        unknown();
    return i;
}
