// class: O(∞)
// why: the counter goes away from its limit
int wrong_way(int n) {
    int i;
    for (i = 0; i < n; i--)
        unknown();
    return i;
}
