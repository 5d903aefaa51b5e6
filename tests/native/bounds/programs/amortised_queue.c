// class: O(n^1)
// why: emptying the queue costs what was put into it
int amortised_queue(int n) {
    int q = 0;
    while (n > 0) {
        n--;
        q++;
        if (NONDET) {
            while (q > 0)
                q--;
        }
    }
    return q;
}
