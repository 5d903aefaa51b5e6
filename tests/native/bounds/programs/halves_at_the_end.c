// bound: 256
// why: the middle lies between the ends as long as they are two apart, and those are tested after the body
int halves_at_the_end(int x, int *a) {
    int low = 0, high = 256, middle;
    do {
        middle = (low + high) >> 1;
        if (x >= a[middle & 1])
            low = middle;
        else
            high = middle;
    } while (high - low != 1);
    return low;
}
