// class: O(n^1)
// why: n is tested before it gets smaller, also the last time
int count_down(unsigned n) {
    int s = 0;
    while (n-- > 0)
        s++;
    return s;
}
