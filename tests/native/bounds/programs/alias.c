// class: O(∞)
// why: the pointer sets the counter again
int alias(int n) {
    int x = n, *p = &x;
    while (x > 0) {
        x--;
        *p = 5;
    }
    return x;
}
