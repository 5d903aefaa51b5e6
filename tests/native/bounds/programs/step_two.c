// class: O(n^1)
// why: half of n is linear
int step_two(int n) {
    int i;
    for (i = 0; i < n; i += 2)
        unknown();
    return i;
}
