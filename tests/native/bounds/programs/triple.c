// class: O(n^3)
// why: three nested loops over inputs
int triple(int n, int m, int k) {
    int s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            for (int l = 0; l < k; l++)
                s++;
    return s;
}
