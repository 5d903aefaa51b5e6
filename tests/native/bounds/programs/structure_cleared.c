// class: O(∞)
// why: memset clears the counter, which is in the structure
struct tally { int count; };
int structure_cleared(struct tally *a, int n) {
    for (a->count = 0; a->count < n; a->count++) {
        memset(a, 0, sizeof *a);
    }
    return n;
}
