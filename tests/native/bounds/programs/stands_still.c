// class: O(∞)
// why: one way through the body changes nothing
int stands_still(int n) {
    while (n > 0) {
        if (NONDET)
            n--;
    }
    return n;
}
