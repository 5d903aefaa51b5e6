// class: O(n^1)
// why: the sum of both gets smaller, whichever name they have
int swapped(int x, int y) {
    while (x > 0 && y > 0) {
        int t = x;
        x = y;
        y = t;
        x--;
    }
    return x + y;
}
