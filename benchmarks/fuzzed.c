/* A program of about 0.1 ms: counts the words of its input, in a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 512

struct word {
  struct word *next;
  int count;
  char text[];
};

static struct word *buckets[BUCKETS];

static unsigned hash(const char *text) {
  unsigned value = 5381;
  while (*text) value = value * 33 + (unsigned char)*text++;
  return value % BUCKETS;
}

static void add(const char *text) {
  unsigned bucket = hash(text);
  for (struct word *word = buckets[bucket]; word; word = word->next)
    if (strcmp(word->text, text) == 0) {
      word->count++;
      return;
    }
  struct word *made = malloc(sizeof *made + strlen(text) + 1);
  if (!made) exit(1);
  strcpy(made->text, text);
  made->count = 1;
  made->next = buckets[bucket];
  buckets[bucket] = made;
}

static int run(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  static char text[1 << 20];
  int most = 0;
  if (!file) return 1;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  if (argc > 1) fclose(file);
  for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) add(word);
  for (int i = 0; i < BUCKETS; i++)
    for (struct word *word = buckets[i]; word; word = word->next)
      if (word->count > most) most = word->count;
  printf("%d\n", most);
  for (int i = 0; i < BUCKETS; i++)
    for (struct word *word = buckets[i]; word; word = buckets[i]) {
      buckets[i] = word->next;
      free(word);
    }
  return 0;
}

int main(int argc, char **argv) {
#ifdef PERSISTENT
  while (__AFL_LOOP(100000))
    if (run(argc, argv)) return 1;
  return 0;
#else
  return run(argc, argv);
#endif
}
