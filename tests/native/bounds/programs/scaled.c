// class: O(n^1)
// why: three times n
int scaled(int n) {
    int i;
    for (i = 0; i < 3 * n; i++)
        unknown();
    return i;
}
