#include <stdlib.h>
#include <string.h>
#define BUFFER 65536
static char *read_line(int number) {
    char *line = malloc(80);
    memset(line, number, 80);
    return line;
}
static long parse(void) {
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        char *line = read_line(i);
        sum += line[3];
        free(line);
    }
    return sum;
}
static char *make_buffer(void) { return calloc(1, BUFFER); }
int main(void) {
    char *buffer = make_buffer();
    buffer[0] = (char)parse();
    free(buffer);
    return 0;
}
