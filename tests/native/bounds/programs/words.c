// class: O(∞)
// why: that one of both inner loops moves on depends on the memory, which stays unknown when read again
int words(int n, int *s) {
    int i = 0, found = 0;
    while (i < n) {
        while (i < n && s[i] == 0)
            i++;
        if (i < n)
            found++;
        while (i < n && s[i] != 0)
            i++;
    }
    return found;
}
