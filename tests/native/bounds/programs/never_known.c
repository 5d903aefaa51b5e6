// class: O(∞)
// why: nothing says when it ends
int never_known(int n) {
    while (NONDET)
        n++;
    return n;
}
