// class: O(n^1)
// why: stores into an array do not change a counter whose address nobody has
void stored(int n, int *a) {
    for (int i = 0; i < n; i++)
        a[i] = i;
}
