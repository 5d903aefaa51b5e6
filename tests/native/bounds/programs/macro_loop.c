// class: O(n^1)
// why: a macro holds the head of the loop
#define REPEAT(i, n) for ((i) = 0; (i) < (n); (i)++)
int macro_loop(int n) {
    int i, s = 0;
    REPEAT(i, n) {
        s++;
    }
    return s;
}
