// bound: 2 + 2 × max(n, 0)
// why: the second loop undoes what the first did
int there_and_back(int n) {
    int i = 0;
    while (i < n)
        i++;
    while (i > 0)
        i--;
    return i;
}
