// class: O(n^1)
// why: a global variable that nothing changes meanwhile
static int limit = 7;
int global_limit(int n) {
    int i, s = n;
    for (i = 0; i < limit; i++)
        s ^= i;
    return s;
}
