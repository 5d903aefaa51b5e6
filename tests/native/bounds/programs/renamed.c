// class: O(n^1)
// why: the counter is handed to another variable and back
int renamed(int n) {
    int i = n, k;
    while (i > 0) {
        k = i;
        k--;
        i = k;
    }
    return i;
}
