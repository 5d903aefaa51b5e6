// class: O(n^1)
// why: from a to b
int from_below(int a, int b) {
    int s = 0;
    while (a < b) {
        a++;
        s++;
    }
    return s;
}
