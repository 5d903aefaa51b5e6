// class: O(n^1)
// why: four iterations for each of n
int inner_constant(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 4; j++)
            s++;
    return s;
}
