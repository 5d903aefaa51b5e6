// class: O(∞)
// why: what is called may set the counter whose address it gets
int given_away(int n) {
    int i = n;
    while (i > 0) {
        i--;
        unknown(&i);
    }
    return i;
}
