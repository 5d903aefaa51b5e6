// class: O(n^1)
// why: first y goes up to m, then x to n
int phases(int n, int m) {
    int x = 0, y = 0;
    while (x < n) {
        if (y < m)
            y++;
        else
            x++;
    }
    return x;
}
