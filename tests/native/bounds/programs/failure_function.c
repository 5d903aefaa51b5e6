// class: O(n^1)
// why: Knuth, Morris and Pratt: k grows by one for each i at most
int failure_function(int n) {
    int k = 0;
    for (int i = 1; i < n; i++) {
        while (k > 0 && NONDET)
            k--;
        if (NONDET)
            k++;
    }
    return k;
}
