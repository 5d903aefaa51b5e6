// class: O(∞)
// why: what memory holds is not known
int scan(int *s) {
    int n = 0;
    while (s[n] != 0)
        n++;
    return n;
}
