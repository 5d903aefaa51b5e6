// class: O(1)
// why: the size of an array is a constant
int table(int n) {
    int values[8];
    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        values[i] = n;
    return values[3];
}
