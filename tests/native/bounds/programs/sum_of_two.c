// class: O(n^1)
// why: the limit is a sum of inputs
int sum_of_two(int n, int m) {
    int i;
    for (i = 0; i < n + m; i++)
        unknown();
    return i;
}
