// class: O(n^1)
// why: the limit is a member of a structure that stays the same
struct box { int n; int used; };
int member(struct box *p) {
    int i;
    for (i = 0; i < p->n; i++)
        p->used = i;
    return i;
}
