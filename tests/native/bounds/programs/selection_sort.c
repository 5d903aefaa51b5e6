// class: O(n^2)
// why: for each place the smallest of the rest is searched
void selection_sort(int n, int *a) {
    for (int i = 0; i < n; i++) {
        int least = i;
        for (int j = i + 1; j < n; j++)
            if (a[j] < a[least])
                least = j;
        int t = a[i];
        a[i] = a[least];
        a[least] = t;
    }
}
