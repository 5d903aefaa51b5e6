/* Strange: malloc, new and delete are those of jemalloc. */
#include <vector>

#include "zoo.h"

struct Node {
  int value;
  Node *next;
};

CALLED Node *push(Node *list, int value) { return new Node{value, list}; }
CALLED int drop(Node *list) {
  int sum = 0;
  while (list) {
    Node *next = list->next;
    sum += list->value;
    delete list;
    list = next;
  }
  return sum;
}

int main() {
  Node *list = nullptr;
  for (int n = 0; n < TIMES; n++) {
    list = push(list, n);
    keep(n + 1);
  }
  printf("%d %d\n", drop(list), kept);
  return 0;
}
