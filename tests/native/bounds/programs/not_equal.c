// class: O(n^1)
// why: i begins below an unsigned limit and meets it
int not_equal(unsigned n) {
    unsigned i;
    for (i = 0; i != n; i++)
        unknown();
    return (int)i;
}
