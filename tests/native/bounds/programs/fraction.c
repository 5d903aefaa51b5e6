// class: O(∞)
// why: floating point numbers are not counted with
int fraction(int n) {
    float x = 0;
    while (x < n)
        x += 0.5f;
    return (int)x;
}
