// class: O(1)
// why: the limit is a constant
enum { SMALL = 4, LARGE = SMALL * 4 };
int enumerated(int n) {
    for (int i = 0; i < LARGE; i++)
        n ^= i;
    return n;
}
