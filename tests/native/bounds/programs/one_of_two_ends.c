// class: O(n^1)
// why: each iteration brings one end nearer to the other
int one_of_two_ends(int n, int *a) {
    int i = 0, j = n - 1;
    while (i < j) {
        if (a[i] < a[j])
            i++;
        else
            j--;
    }
    return i;
}
