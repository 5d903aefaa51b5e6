// class: O(n^3)
// why: n rows, n columns, n products
void matrix_product(int n, int *a, int *b, int *c) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int s = 0;
            for (int k = 0; k < n; k++)
                s += a[i * n + k] & b[k * n + j];
            c[i * n + j] = s;
        }
}
