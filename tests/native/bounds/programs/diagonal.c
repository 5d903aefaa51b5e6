// class: O(n^2)
// why: the inner loop runs n - i times
int diagonal(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++)
            s++;
    return s;
}
