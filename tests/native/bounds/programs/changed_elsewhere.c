// class: O(∞)
// why: what is called may set the counter again
int counter;
int changed_elsewhere(int n) {
    counter = n;
    while (counter > 0) {
        counter--;
        unknown();
    }
    return counter;
}
