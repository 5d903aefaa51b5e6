// bound: 1 + max(m, 0) × max(n, 0) + 51 × max(n, 0)
// why: each piece begins behind the last one, and has fifty numbers at most
void chunks(int n, int m, int *a) {
    int start = 0, end;
    while (1) {
        if (start >= n)
            break;
        end = start + 49;
        if (end >= n)
            end = n - 1;
        for (int j = 0; j < m; j++)
            a[0]++;
        for (int i = start; i <= end; i++)
            a[1]++;
        start = end + 1;
    }
}
