// class: O(n^1)
// why: a negative number is added
int negative_step(int n) {
    while (n > 0)
        n += -2;
    return n;
}
