/* Parses elements by recursion, with a buffer for the name of each on the stack: deep nesting exhausts it. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static FILE *file;
static unsigned elements;

static int name(char *into, int size)
{
    int length = 0, c = getc(file);
    while (c != EOF && c != '>') {
        if (length < size - 1)
            into[length++] = (char) c;
        c = getc(file);
    }
    into[length] = '\0';
    return c;
}

/* The content of an element up to its closing tag, or to the end of the file. */
static int content(const char *parent)
{
    char tag[4096];
    int c;
    while ((c = getc(file)) != EOF) {
        if (c != '<')
            continue;
        if (name(tag, sizeof tag) == EOF)
            return EOF;
        if (tag[0] == '/')
            return strncmp(tag + 1, parent, strcspn(parent, " ")) == 0;
        if (tag[0] == '?' || tag[0] == '!' || tag[strlen(tag) - 1] == '/')
            continue;
        elements++;
        content(tag);
    }
    return EOF;
}

int main(int count, char **arguments)
{
    struct rlimit stack = {256 * 1024, 256 * 1024};
    file = count > 1 ? fopen(arguments[1], "r") : stdin;
    if (file == NULL)
        return 2;
    setrlimit(RLIMIT_STACK, &stack);
    content("");
    printf("%u\n", elements);
    return 0;
}
