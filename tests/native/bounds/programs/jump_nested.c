// class: O(n^2)
// why: two loops made of jumps, of n and m
int jump_nested(int n, int m) {
    int i = 0, j, s = 0;
outer:
    if (i >= n)
        return s;
    j = 0;
inner:
    if (j < m) {
        j++;
        s++;
        goto inner;
    }
    i++;
    goto outer;
}
