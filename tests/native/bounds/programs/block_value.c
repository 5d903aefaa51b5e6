// class: O(n^1)
// why: a statement expression of GNU C that changes nothing but its own variable
int block_value(int n) {
    int s = 0;
    while (n > 0) {
        s = ({ int t = s; t + 1; });
        n--;
    }
    return s;
}
