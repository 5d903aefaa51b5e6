// class: O(n^1)
// why: each shift makes a positive number smaller
int shifting(unsigned n) {
    int bits = 0;
    while (n != 0) {
        n >>= 1;
        bits++;
    }
    return bits;
}
