/* Sorts the numbers of its input by insertion. */
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100000 };

static long numbers[MOST];

static void sort(size_t count)
{
    for (size_t i = 1; i < count; i++) {
        long value = numbers[i];
        size_t at = i;
        while (at > 0 && numbers[at - 1] > value) {
            numbers[at] = numbers[at - 1];
            at--;
        }
        numbers[at] = value;
    }
}

int main(int count, char **arguments)
{
    char word[32];
    size_t read = 0;
    FILE *file = count > 1 ? fopen(arguments[1], "r") : stdin;
    if (file == NULL)
        return 2;
    while (read < MOST && fscanf(file, "%31s", word) == 1)
        numbers[read++] = strtol(word, NULL, 10);
    sort(read);
    printf("%ld\n", read ? numbers[0] : 0);
    return 0;
}
