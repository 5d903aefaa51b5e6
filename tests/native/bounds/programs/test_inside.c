// class: O(n^1)
// why: the limit is tested in the middle of the body
int test_inside(int n) {
    int i = 0;
    for (;;) {
        if (i >= n)
            break;
        i++;
    }
    return i;
}
