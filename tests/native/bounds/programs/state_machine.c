// class: O(n^1)
// why: whatever the state is, a symbol is read
int state_machine(int n) {
    int state = 0, errors = 0;
    while (n > 0) {
        n--;
        switch (state) {
        case 0:
            state = NONDET ? 1 : 2;
            break;
        case 1:
            state = 2;
            break;
        case 2:
            state = 0;
            break;
        default:
            errors++;
        }
    }
    return errors;
}
