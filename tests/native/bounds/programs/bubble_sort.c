// class: O(n^2)
// why: n - 1 rounds, of n - 1 - i comparisons
void bubble_sort(int n, int *a) {
    for (int i = 0; i < n - 1; i++)
        for (int j = 0; j < n - 1 - i; j++)
            if (a[j] > a[j + 1]) {
                int t = a[j];
                a[j] = a[j + 1];
                a[j + 1] = t;
            }
}
