// class: O(n^1)
// why: the own loop alone: what calls cost is not asked
int recursive(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s++;
    return n > 0 && n < 100 ? s + recursive(n - 1) : s;
}
