// class: O(∞)
// why: the structure that holds the limit is assigned as a whole
struct range { int low, high; };
int structure_copied(struct range *a, struct range *b) {
    int i, s = 0;
    for (i = 0; i < a->high; i++) {
        s++;
        *a = *b;
    }
    return s;
}
