/* Reads a file like PNG: a signature, and chunks of a length (two bytes), a type (four letters) and data. To
   find the chunk before each one, it walks all of them from the start. */
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 20, HEAD = 6, SIGNATURE = 4 };

static unsigned char data[MOST];
static size_t size;

static size_t next(size_t at)
{
    size_t length = (size_t) data[at] << 8 | data[at + 1];
    return at + HEAD + length;
}

static size_t before(size_t wanted)
{
    size_t at = SIGNATURE, last = SIGNATURE;
    while (at < wanted) {
        last = at;
        at = next(at);
    }
    return last;
}

int main(int count, char **arguments)
{
    unsigned repeated = 0, chunks = 0;
    FILE *file = count > 1 ? fopen(arguments[1], "rb") : stdin;
    if (file == NULL)
        return 2;
    size = fread(data, 1, MOST - HEAD, file);
    if (size < SIGNATURE || memcmp(data, "\x89PNX", SIGNATURE) != 0)
        return 1;
    for (size_t at = SIGNATURE; at + HEAD <= size; at = next(at)) {
        repeated += memcmp(data + before(at) + 2, data + at + 2, 4) == 0;
        chunks++;
    }
    printf("%u %u\n", chunks, repeated);
    return 0;
}
