// class: O(n^1)
// why: each round moves i up or j down, in all three loops together
int partition(int n, int *a, int pivot) {
    int i = 0, j = n - 1;
    while (i <= j) {
        while (i <= j && a[i] < pivot)
            i++;
        while (i <= j && a[j] >= pivot)
            j--;
        if (i < j) {
            int t = a[i];
            a[i] = a[j];
            a[j] = t;
        }
        i++;
        j--;
    }
    return i;
}
