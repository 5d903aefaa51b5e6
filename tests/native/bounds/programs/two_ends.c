// class: O(n^1)
// why: i and j meet
int two_ends(int n) {
    int s = 0;
    for (int i = 0, j = n; i < j; i++, j--)
        s++;
    return s;
}
