/* A list: 1000 cells of 24 bytes are allocated, 900 of them freed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct cell {
  struct cell *next;
  char text[16];
};

static struct cell *push(struct cell *list) {
  struct cell *cell = malloc(sizeof *cell);
  cell->next = list;
  return cell;
}

static struct cell *pop(struct cell *list) {
  struct cell *next = list->next;
  free(list);
  return next;
}

int main(int argc, char **argv) {
  struct cell *list = NULL;
  FILE *addresses = argc > 1 && argv[1][0] == '/' ? fopen(argv[1], "w") : NULL; /* where each cell is, to compare with */
  static uintptr_t at[1000];
  for (int i = 0; i < 1000; i++) at[i] = (uintptr_t)(list = push(list));
  for (int i = 0; i < 900; i++) list = pop(list);
  if (addresses) {
    for (int i = 0; i < 1000; i++) fprintf(addresses, "%lu\n", (unsigned long)at[i]);
    fclose(addresses);
  }
  return list->next ? 7 : 0;
}
