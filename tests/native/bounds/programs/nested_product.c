// class: O(n^2)
// why: n times m
int nested_product(int n, int m) {
    int s = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            s += unknown();
    }
    return s;
}
