// class: O(∞)
// why: it never ends
int for_ever(int n) {
    for (;;)
        n ^= unknown();
}
