// class: O(∞)
// why: a function that is called assigns the structure in which the limit is
struct inner { int size; };
struct outer { int kind; struct inner of; };
void again(struct outer *all, struct outer *one) { all[0] = *one; }
int structure_set_again(struct outer *a, struct outer *b) {
    int i, s = 0;
    for (i = 0; i < a->of.size; i++) {
        s++;
        again(a, b);
    }
    return s;
}
