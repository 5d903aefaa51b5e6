// bound: 2 + max(m, 0) + max(n, 0)
// why: one loop after the other: the costs are added
int sequence(int n, int m) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s++;
    for (int j = 0; j < m; j++)
        s++;
    return s;
}
