/* Sorts the numbers of its input by quick sort, whose pivot is the first one: sorted input is the worst. */
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100000 };

static long numbers[MOST];

static void swap(size_t one, size_t other)
{
    long value = numbers[one];
    numbers[one] = numbers[other];
    numbers[other] = value;
}

static void sort(size_t first, size_t end)
{
    while (end - first > 1) {
        size_t middle = first;
        for (size_t at = first + 1; at < end; at++) {
            if (numbers[at] < numbers[first])
                swap(++middle, at);
        }
        swap(first, middle);
        /* The smaller part is sorted by a call, so that the stack remains small. */
        if (middle - first < end - middle) {
            sort(first, middle);
            first = middle + 1;
        } else {
            sort(middle + 1, end);
            end = middle;
        }
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
    sort(0, read);
    printf("%ld\n", read ? numbers[0] : 0);
    return 0;
}
