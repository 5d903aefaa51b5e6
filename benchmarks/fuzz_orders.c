/* Small programs with known worst cases; -DPROGRAM=name chooses one. Each reads the file it is given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 65536
static char text[MOST + 1];
static char *part[MOST];
static long value[MOST];
static long count, work;

static int same(const char *a, const char *b) {
  while (*a && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

static void split(const char *separators) {
  for (char *one = strtok(text, separators); one; one = strtok(NULL, separators)) part[count++] = one;
}

static void numbers(void) {
  split(" \n");
  for (long i = 0; i < count; i++) value[i] = atol(part[i]);
}

/* Each part is looked for among those before that differ. */
static void distinct(void) {
  long known = 0;
  for (long i = 0; i < count; i++) {
    long at = 0;
    while (at < known && !same(part[at], part[i])) at++;
    if (at == known) part[known++] = part[i];
  }
  work = known;
}

static void different_lines(void) {
  split("\n");
  distinct();
}

static void different_words(void) {
  split(" \n");
  distinct();
}

static void different_keys(void) {
  split(";\n");
  for (long i = 0; i < count; i++) part[i][strcspn(part[i], "=")] = 0;
  distinct();
}

/* Each line is appended to what is there, whose end is looked for. */
static void appended_lines(void) {
  static char all[MOST + 1];
  for (char *at = text; *at; at++) {
    if (*at != '\n') continue;
    char *end = all;
    while (*end) end++;
    *end = '.';
  }
}

/* Each closing bracket counts its depth. */
static void nested_brackets(void) {
  long depth = 0;
  for (char *at = text; *at; at++) {
    if (*at == '(') depth++;
    if (*at == ')' && depth) {
      for (long i = 0; i < depth; i++) work++;
      depth--;
    }
  }
}

/* The same words are in a list, to whose end is gone. */
static void same_words(void) {
  split(" \n");
  for (long i = 1; i < count; i++)
    if (same(part[i], part[0]))
      for (long j = 0; j < i; j++)
        if (part[j][0] == part[0][0]) work++;
}

/* From each blank on, whether only blanks follow. */
static void trimmed_spaces(void) {
  for (char *at = text; *at; at++) {
    char *end = at;
    while (*end == ' ') end++;
    if (!*end) break;
  }
}

static void insertion_sort(void) {
  numbers();
  for (long i = 1; i < count; i++)
    for (long j = i; j > 0 && value[j - 1] > value[j]; j--) {
      long swap = value[j];
      value[j] = value[j - 1];
      value[j - 1] = swap;
    }
}

static void sorted(long low, long high) {
  if (low >= high) return;
  long place = low;
  for (long i = low + 1; i <= high; i++)
    if (value[i] < value[low]) {
      long swap = value[++place];
      value[place] = value[i];
      value[i] = swap;
    }
  long swap = value[low];
  value[low] = value[place];
  value[place] = swap;
  sorted(low, place - 1);
  sorted(place + 1, high);
}

static void quick_sort(void) {
  numbers();
  sorted(0, count - 1);
}

/* A table whose hash is the sum of the letters. */
static void hash_collisions(void) {
  static long next[MOST], first[4096];
  split(" \n");
  for (long i = 0; i < count; i++) {
    unsigned hash = 0;
    for (char *at = part[i]; *at; at++) hash += (unsigned char)*at * 17;
    hash %= 4096;
    long at = first[hash];
    while (at && !same(part[at - 1], part[i])) at = next[at - 1];
    if (at) continue;
    next[i] = first[hash];
    first[hash] = i + 1;
  }
}

/* The first field is taken off, and the others are moved. */
static void removed_fields(void) {
  for (char *comma = strchr(text, ','); comma; comma = strchr(text, ',')) {
    char *to = text;
    for (char *from = comma + 1; *from; from++) *to++ = *from;
    *to = 0;
  }
}

/* At each quote everything before is counted. */
static void counted_quotes(void) {
  for (char *at = text; *at; at++)
    if (*at == '"')
      for (char *before = text; before < at; before++) work += *before == '"';
}

/* The end of each comment is looked for; without one, the next begins behind its mark. */
static void open_comments(void) {
  for (char *at = text; *at; at++) {
    if (at[0] != '/' || at[1] != '*') continue;
    char *end = at + 2;
    while (*end && !(end[0] == '*' && end[1] == '/')) end++;
    if (*end) at = end;
  }
}

/* The longest part that is there twice, by trying all. */
static void longest_repeated(void) {
  for (char *one = text; *one; one++)
    for (char *other = one + 1; *other; other++) {
      long length = 0;
      while (other[length] && one[length] == other[length]) length++;
      if (length > work) work = length;
    }
}

static void equal_triples(void) {
  numbers();
  for (long i = 0; i < count; i++)
    for (long j = 0; j < i; j++)
      if (value[i] == value[j])
        for (long k = 0; k < j; k++) work += value[k] == value[j];
}

/* expression = term '+' expression | term; term = '(' expression ')' | letter: the first alternative is
   tried, and then all again. */
static char *expression(char *at);

static char *term(char *at) {
  if (*at == '(') {
    at = expression(at + 1);
    return at && *at == ')' ? at + 1 : NULL;
  }
  return *at >= 'a' && *at <= 'z' ? at + 1 : NULL;
}

static char *expression(char *at) {
  char *end = term(at);
  if (end && *end == '+') {
    end = expression(end + 1);
    if (end) return end;
  }
  return term(at);
}

static void backtracking_nesting(void) { work = expression(text) != NULL; }

/* ^(a+)+$ */
static int groups(const char *at) {
  long most = 0;
  while (at[most] == 'a') most++;
  for (long taken = most; taken > 0; taken--)
    if (at[taken] == 0 || at[taken] == '\n' || groups(at + taken)) return 1;
  return 0;
}

static void backtracking_quantifier(void) { work = groups(text); }

/* ^(x|xx)*$, of each line. */
static int alternatives(const char *at) {
  if (*at == 0 || *at == '\n') return 1;
  if (*at == 'x' && alternatives(at + 1)) return 1;
  return at[0] == 'x' && at[1] == 'x' && alternatives(at + 2);
}

static void backtracking_alternatives(void) {
  split("\n");
  for (long i = 0; i < count; i++) work += alternatives(part[i]);
}

/* Whether numbers can be chosen whose sum is the half. */
static int chosen(long at, long left) {
  if (left == 0) return 1;
  if (at == count || left < 0) return 0;
  return chosen(at + 1, left - value[at]) || chosen(at + 1, left);
}

static void subset_sum(void) {
  long sum = 0;
  numbers();
  for (long i = 0; i < count; i++) sum += value[i] = labs(value[i]) % 100000;
  work = sum % 2 ? chosen(0, sum / 2 + 1) : chosen(0, sum / 2);
}

/* No worst case. */
static void letters(void) {
  static long of[256];
  for (char *at = text; *at; at++) of[(unsigned char)*at]++;
  work = of['a'];
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  if (!file) return 1;
  text[fread(text, 1, MOST, file)] = 0;
  PROGRAM();
  printf("%ld %ld\n", count, work);
  return 0;
}
