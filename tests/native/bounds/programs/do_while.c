// class: O(n^1)
// why: the body runs once, and again while i is below n
int do_while(int n) {
    int i = 0;
    do {
        i++;
    } while (i < n);
    return i;
}
