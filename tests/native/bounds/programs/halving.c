// class: O(n^1)
// why: logarithmic, but a linear bound is what polynomials can say
int halving(int n) {
    int steps = 0;
    while (n > 1) {
        n /= 2;
        steps++;
    }
    return steps;
}
