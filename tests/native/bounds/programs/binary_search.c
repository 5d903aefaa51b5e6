// class: O(n^1)
// why: the interval gets smaller by one at least
int binary_search(int n, int *a, int x) {
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (a[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
