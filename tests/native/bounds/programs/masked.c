// class: O(1)
// why: the low four bits are 15 at most
int masked(int n) {
    int k = n & 15;
    while (k > 0)
        k--;
    return k;
}
