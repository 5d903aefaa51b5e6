#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
struct node { struct node *next; long value; };
static struct node *push(struct node *list, long value) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    node->value = value;
    return node;
}
static void leak(void) { if (!strdup("eleven byte")) abort(); }
static void temporary(void) {
    for (int i = 0; i < 50; i++) { volatile char *p = malloc(200); p[0] = 1; free((void *)p); }
}
int main(int count, char **words) {
    long size = count > 1 ? atol(words[1]) : 100;
    struct node *list = NULL;
    for (long i = 0; i < size; i++) list = push(list, i);
    char *grown = realloc(calloc(1000, 5), 100000);
    temporary();
    leak(); leak(); leak();
    if (count > 2 && !strcmp(words[2], "kill")) raise(SIGKILL);
    while (list) { struct node *next = list->next; free(list); list = next; }
    free(grown);
    return count > 2 ? atoi(words[2]) : 0;
}
