/* Calls that take little and much, and some that make many short ones: proportions that recording must not change. */
#include <stdlib.h>

static volatile long sum;

void leaf(long value) { sum += value; }

void little(void) {
    for (long round = 0; round < 9000; round++)
        sum += round;
}

void much(void) {
    for (long round = 0; round < 180000; round++)
        sum += round;
}

/* As long as much(), and 20 short calls in it. */
void with_calls(void) {
    for (long round = 0; round < 180000; round++)
        sum += round;
    for (long call = 0; call < 20; call++)
        leaf(call);
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1;
    for (long round = 0; round < rounds; round++) {
        little();
        much();
        with_calls();
    }
    return 0;
}
