// class: O(n^1)
// why: labels for ranges of values, of GNU C
int ranges(int n) {
    while (n > 0) {
        switch (unknown()) {
        case 0 ... 1:
            n -= 2;
            break;
        default:
            n--;
        }
    }
    return n;
}
