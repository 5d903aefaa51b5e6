// class: O(n^1)
// why: break and continue do not add iterations
int leave_and_skip(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) {
        if (NONDET)
            continue;
        if (unknown())
            break;
        s++;
    }
    return s;
}
