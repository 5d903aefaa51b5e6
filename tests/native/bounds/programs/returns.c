// class: O(n^1)
// why: a return ends it early
int returns(int n) {
    for (int i = 0; i < n; i++)
        if (unknown() == 1)
            return i;
    return -1;
}
