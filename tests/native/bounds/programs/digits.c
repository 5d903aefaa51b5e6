// class: O(n^1)
// why: a division by ten makes a positive number smaller
int digits(unsigned n) {
    int found = 0;
    do {
        n /= 10;
        found++;
    } while (n > 0);
    return found;
}
