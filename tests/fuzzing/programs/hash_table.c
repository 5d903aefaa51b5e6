/* Counts different words in a table whose hash function takes only the length of a word: words of equal length
   are in one list, which is searched from its start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 64, LONGEST = 64 };

struct entry {
    char word[LONGEST];
    struct entry *next;
};

static struct entry *table[BUCKETS];
static unsigned different;

static unsigned hash(const char *word)
{
    return (unsigned) strlen(word) % BUCKETS;
}

static void insert(const char *word)
{
    struct entry **place = &table[hash(word)];
    while (*place != NULL) {
        if (strcmp((*place)->word, word) == 0)
            return;
        place = &(*place)->next;
    }
    *place = calloc(1, sizeof **place);
    strncpy((*place)->word, word, LONGEST - 1);
    different++;
}

int main(int count, char **arguments)
{
    char word[LONGEST];
    FILE *file = count > 1 ? fopen(arguments[1], "r") : stdin;
    if (file == NULL)
        return 2;
    while (fscanf(file, "%63s", word) == 1)
        insert(word);
    printf("%u\n", different);
    return 0;
}
