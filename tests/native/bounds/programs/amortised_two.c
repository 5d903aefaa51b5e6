// class: O(n^1)
// why: each element moves from the first stack to the second once, and leaves it once
int amortised_two(int n) {
    int first = 0, second = 0;
    while (n > 0) {
        n--;
        first++;
        if (NONDET) {
            while (first > 0) {
                first--;
                second++;
            }
        }
        while (second > 0 && NONDET)
            second--;
    }
    return second;
}
