// class: O(n^1)
// why: i is positive, so that doubling it adds one at least
int doubling(int n) {
    int i = 1, steps = 0;
    while (i < n) {
        i *= 2;
        steps++;
    }
    return steps;
}
