// class: O(n^1)
// why: the inner loop goes on where it stopped: both together run n times
int counts_on(int n) {
    int i = 0;
    while (i < n) {
        i++;
        while (i < n && NONDET)
            i++;
    }
    return i;
}
