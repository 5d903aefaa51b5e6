/* A singly linked list: inserting takes the same time always, searching as long as the list is. */
#include <stdlib.h>

struct node {
  int value;
  struct node *next;
};

struct list {
  struct node *first;
  unsigned size;
};

void list_insert(struct list *list, int value) {
  struct node *node = malloc(sizeof *node);
  node->value = value;
  node->next = list->first;
  list->first = node;
  list->size++;
}

int list_search(const struct list *list, int value) {
  for (const struct node *node = list->first; node; node = node->next)
    if (node->value == value) return 1;
  return 0;
}

void list_destroy(struct list *list) {
  while (list->first) {
    struct node *next = list->first->next;
    free(list->first);
    list->first = next;
    list->size--;
  }
}

int main(int count, char **arguments) {
  int most = count > 1 ? atoi(arguments[1]) : 100, found = 0;
  struct list list = {NULL, 0};
  for (int value = 0; value < most; value++) {
    list_insert(&list, value);
    found += list_search(&list, -1);
  }
  list_destroy(&list);
  return found;
}
