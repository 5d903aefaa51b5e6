// class: O(1)
// why: ten iterations, whatever the inputs are
int constant(int n) {
    for (int i = 0; i < 10; i++)
        n ^= i;
    return n;
}
