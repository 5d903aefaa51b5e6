/* A skip list, whose levels are as perfect as they can be: searching takes the logarithm of its length. */
#include <stdlib.h>

#define LEVELS 20
#define WORDS 64 /* of a value, of which only the last ones differ, so that it takes a while to compare two */

struct node {
  int words[WORDS];
  struct node *next[LEVELS];
};

struct skiplist {
  struct node head;
  struct node *last[LEVELS];
  int length, levels;
};

static void skiplist_append(struct skiplist *list, int value) {
  struct node *node = calloc(1, sizeof *node);
  int number = ++list->length;
  node->words[WORDS - 1] = value;
  for (int level = 0; level < LEVELS && number % (1 << level) == 0; level++) {
    (list->last[level] ? list->last[level] : &list->head)->next[level] = node;
    list->last[level] = node;
    if (level == list->levels) list->levels++;
  }
}

int skiplist_search(const struct skiplist *list, const int *words) {
  const struct node *node = &list->head;
  for (int level = list->levels - 1; level >= 0; level--) {
    while (node->next[level]) {
      int at = 0;
      while (at < WORDS - 1 && node->next[level]->words[at] == words[at]) at++;
      if (node->next[level]->words[at] >= words[at]) break;
      node = node->next[level];
    }
  }
  return node->next[0] && node->next[0]->words[WORDS - 1] == words[WORDS - 1];
}

int main(int count, char **arguments) {
  int most = count > 1 ? atoi(arguments[1]) : 1000, found = 0;
  int farthest = 1; /* the number that most steps lead to: one on each level */
  static struct skiplist list;
  static int words[WORDS];
  for (int value = 0; value < most; value++) {
    skiplist_append(&list, value);
    if (list.length >= 2 * farthest + 1) farthest = 2 * farthest + 1;
    words[WORDS - 1] = farthest - 1;
    if (list.length % 7 == 0)
      for (int again = 0; again < 3; again++) found += skiplist_search(&list, words);
  }
  return found == 3 * (most / 7) ? 0 : 1;
}
