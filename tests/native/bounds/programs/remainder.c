// class: O(1)
// why: a remainder of 8 is 7 at most
int remainder_(int n) {
    int k = n % 8;
    while (k > 0)
        k--;
    return k;
}
