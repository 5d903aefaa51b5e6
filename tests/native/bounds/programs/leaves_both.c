// class: O(n^2)
// why: a jump out of both loops at once makes neither longer
int leaves_both(int n, int m) {
    int i, j = 0;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            if (unknown() == 2)
                goto done;
done:
    return i + j;
}
