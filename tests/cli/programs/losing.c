#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char bytes[100]; } *kept;
static void keep(void) { kept = malloc(sizeof *kept); kept->next = malloc(50); }
static void lose(void) {
    struct node *volatile node = malloc(sizeof *node);
    node->next = malloc(30);
    node = 0;
}
static int wipe(void) { volatile char bytes[5000]; memset((void *)bytes, 0, sizeof bytes); return bytes[9]; }
int main(int count, char **words) {
    keep();
    for (int i = 0; i < 4; i++) lose();
    if (count > 1) abort();
    return wipe();
}
