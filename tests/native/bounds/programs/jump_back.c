// class: O(n^1)
// why: a loop made of a jump
int jump_back(int n) {
    int i = 0;
again:
    if (i < n) {
        i++;
        goto again;
    }
    return i;
}
