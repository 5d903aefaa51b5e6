// class: O(n^1)
// why: each way through the switch takes one or two from n
int fall_through(int n) {
    while (n > 0) {
        switch (NONDET) {
        case 0:
            n--;
        default:
            n--;
        }
    }
    return n;
}
