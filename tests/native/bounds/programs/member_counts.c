// class: O(n^1)
// why: the member itself counts down
struct heap { int n; };
int member_counts(struct heap *p) {
    int steps = 0;
    while (p->n > 0) {
        p->n--;
        steps++;
    }
    return steps;
}
