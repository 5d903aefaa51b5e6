"""Twenty commits of programs in C and C++ that made them cost more, each with what did it.

The programs are compiled with optimization, so that most of what changed has no code of its own: functions
that are inlined, macros, constants, headers, templates, other files by LTO, a table of data, a flag.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FLAGS = "-O2 -g"


class ExplainedCommit(NamedTuple):
    """A program, what a commit changes of it, and what of that costs more.

    :param edits: of the commit: file, text, what stands there then. :param lead: the name of the function or
        of the definition, or the path of the file, that shall be told first.
    """

    name: str
    lead: str
    files: Mapping[str, str]
    edits: Sequence[tuple[str, str, str]]
    flags: str = FLAGS


# A tokenizer: is_word() and classify() are inlined into count_words(), that into main().
TOKENS = {
    "tokens.c": """\
#include <stdio.h>
#include <string.h>
#include "tokens.h"

static const char *delimiters = " ,.;:!?\\n\\t-()[]{}\\"'";
static char text[40000];

static int classify(char letter)
{
    if (letter >= 'a' && letter <= 'z')
        return 1;
    for (const char *one = delimiters; *one; one++)
        if (*one == letter)
            return 2;
    return 3;
}

static int is_word(const char *at)
{
    return classify(*at) == 1;
}

static int count_words(const char *at)
{
    int words = 0, inside = 0;
    for (; *at; at++) {
        int now = is_word(at);
        words += now && !inside;
        inside = now;
    }
    return words;
}

static unsigned digest(const char *at)
{
    unsigned sum = SEED;
    for (; *at; at++)
        sum = sum * 31 + (unsigned char)*at;
    return sum;
}

int main(void)
{
    for (int i = 0; i < (int)sizeof text - 1; i++)
        text[i] = i % 7 == 6 ? ' ' : 'a' + i % 26;
    int words = 0;
    for (int i = 0; i < 5; i++)
        words += count_words(text);
    printf("%d %u %s\\n", words, digest(text), GREETING);
    return 0;
}
""",
    "tokens.h": '#define SEED 17\n#define GREETING "hello"\n',
}

# Brackets: find_open() decides how often process() runs, which is no part of the diff.
BRACKETS = {
    "brackets.c": """\
#include <stdio.h>
#include <stdlib.h>

struct mark { int place, kind; };
static struct mark marks[4000];
static int many;

__attribute__((noinline)) static long process(struct mark *from, struct mark *to)
{
    long sum = 0;
    for (int i = 0; i < 40; i++)
        sum += (from->place * i) ^ (to->place + sum);
    return sum;
}

static struct mark *find_open(struct mark *from, long *sum)
{
    for (struct mark *one = from; one >= marks; one--) {
        if (one->kind != from->kind)
            continue;
        *sum += process(one, from);
        return one;
    }
    return NULL;
}

__attribute__((noinline)) static void scan(int count)
{
    for (int i = 0; i < count; i++) {
        marks[many].place = i * 7;
        marks[many++].kind = i % 3;
    }
}

int main(void)
{
    long sum = 0;
    scan(1500);
    for (int i = 20; i < many; i++)
        find_open(&marks[i], &sum);
    printf("%ld\\n", sum);
    return 0;
}
""",
}

# A table of words: the hash decides how long the chains are that lookup() walks.
TABLE = {
    "table.c": """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "table.h"

struct entry { struct entry *next; int count; char key[12]; };
static struct entry *buckets[BUCKETS];

static unsigned hash_of(const char *key)
{
    unsigned sum = 5381;
    while (*key)
        sum = sum * 33 + (unsigned char)*key++;
    return sum % BUCKETS;
}

__attribute__((noinline)) struct entry *lookup(const char *key)
{
    struct entry **at = &buckets[hash_of(key)];
    for (; *at; at = &(*at)->next)
        if (!strcmp((*at)->key, key))
            return *at;
    *at = calloc(1, sizeof **at);
    strcpy((*at)->key, key);
    return *at;
}

__attribute__((noinline)) static int total(void)
{
    int sum = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *one = buckets[i]; one; one = one->next)
            sum += one->count;
    return sum;
}

int main(void)
{
    char key[12];
    for (int i = 0; i < 6000; i++) {
        snprintf(key, sizeof key, "w%dx", i * 7919 % 1500);
        lookup(key)->count++;
    }
    printf("%d\\n", total());
    return 0;
}
""",
    "table.h": "#ifndef TABLE_H\n#define TABLE_H\n\n#define BUCKETS 1024\n\n#endif\n",
}

# A picture: what a header has as inline functions, a macro with arguments and a constant.
PICTURE = {
    "picture.c": """\
#include <stdio.h>
#include "pixel.h"

static unsigned char picture[120][160];

static void paint(void)
{
    for (int y = 0; y < 120; y++)
        for (int x = 0; x < 160; x++)
            picture[y][x] = (unsigned char)(x * y);
}

static void blur(void)
{
    for (int y = 1; y < 119; y++)
        for (int x = 1; x < 159; x++)
            picture[y][x] = average(picture[y - 1][x], picture[y + 1][x]);
}

__attribute__((noinline)) static long sum(void)
{
    long whole = 0;
    for (int y = 0; y < 120; y++)
        for (int x = 0; x < 160; x++)
            whole += MIX(picture[y][x]);
    return whole;
}

int main(void)
{
    paint();
    for (int i = 0; i < passes; i++)
        blur();
    printf("%ld\\n", sum());
    return 0;
}
""",
    "pixel.h": """\
#ifndef PIXEL_H
#define PIXEL_H

#define MIX(value) ((value) * 3 + 1)

static const int passes = 4;

static inline int clamp(int value)
{
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

static inline unsigned char average(int one, int other)
{
    return (unsigned char)clamp((one + other) / 2);
}

#endif
""",
}

# Old C: definitions as before 1989, and functions that a macro defines.
OLD = {
    "old.c": """\
#include <stdio.h>
#include <string.h>

#define DEFINE_SEARCH(name, type) \\
    static int name(const type *all, int count, type wanted) \\
    {

#define END_SEARCH return -1; }

static int values[3000];
static char line[2000];

DEFINE_SEARCH(search, int)
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (all[middle] == wanted)
            return middle;
        if (all[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
END_SEARCH

static int
width_of(text, limit)
    const char *text;
    int limit;
{
    int width = 0, length = (int)strlen(text);
    while (width < limit && width < length)
        width += text[width] == '\\t' ? 2 : 1;
    return width;
}

static int
checksum(text)
    const char *text;
{
    int sum = 0;
    while (*text)
        sum = sum * 5 + *text++;
    return sum;
}

int main(void)
{
    int found = 0;
    for (int i = 0; i < 3000; i++)
        values[i] = 2 * i;
    memset(line, 'x', sizeof line - 1);
    for (int i = 0; i < 900; i++)
        found += search(values, 3000, 3 * i);
    for (int i = 0; i < 20; i++)
        found += width_of(line, 1500) + checksum(line);
    printf("%d\\n", found);
    return 0;
}
""",
}

# Templates and lambdas, of a header of the project and within those of the library.
SHOP = {
    "shop.cpp": """\
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
#include "flat_map.h"

struct Item {
    std::string name;
    int price;
};

static bool cheaper(const Item &one, const Item &other)
{
    return one.price < other.price;
}

static std::vector<Item> stock(int count)
{
    std::vector<Item> all;
    for (int i = 0; i < count; i++)
        all.push_back({"a rather long name of item " + std::to_string(i), i * 7919 % 1009});
    return all;
}

static long spend(const std::vector<Item> &all, shop::FlatMap<int, int> &counts)
{
    long whole = 0;
    for (const Item &one : all) {
        counts.at(one.price)++;
        whole += one.price;
    }
    return whole;
}

int main()
{
    std::vector<Item> all = stock(1200);
    std::sort(all.begin(), all.end(), [](const Item &one, const Item &other) { return cheaper(one, other); });
    shop::FlatMap<int, int> counts;
    long whole = spend(all, counts) + spend(all, counts);
    std::printf("%ld %zu\\n", whole, counts.size());
}
""",
    "flat_map.h": """\
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

namespace shop {

template <typename Key, typename Value>
class FlatMap {
  public:
    Value &at(const Key &key)
    {
        auto place = find(key);
        if (place == all_.end() || place->first != key)
            place = all_.insert(place, {key, Value()});
        return place->second;
    }

    std::size_t size() const { return all_.size(); }

  private:
    using Place = typename std::vector<std::pair<Key, Value>>::iterator;

    Place find(const Key &key)
    {
        return std::lower_bound(all_.begin(), all_.end(), key,
                                [](const auto &one, const Key &wanted) { return one.first < wanted; });
    }

    std::vector<std::pair<Key, Value>> all_;
};

}
""",
}

# Two files: by LTO what score.c has is inlined into game.c.
GAME = {
    "game.c": """\
#include <stdio.h>
#include "score.h"

static struct board board;

static void deal(void)
{
    for (int i = 0; i < CELLS; i++)
        board.cells[i] = i * 31 % 17;
}

static void turn(int number)
{
    board.cells[number % CELLS] = score(&board, number) & 15;
}

int main(void)
{
    deal();
    for (int i = 0; i < 3000; i++)
        turn(i);
    printf("%d %d\\n", score(&board, 0), board.cells[5]);
    return 0;
}
""",
    "score.c": """\
#include "score.h"

static int weight(const struct board *board, int cell)
{
    return board->cells[cell] * (cell & 3);
}

int score(const struct board *board, int from)
{
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum += weight(board, (from + i) % CELLS);
    return sum;
}
""",
    "score.h": """\
#ifndef SCORE_H
#define SCORE_H
enum { CELLS = 64 };
struct board { int cells[CELLS]; };
int score(const struct board *board, int from);
#endif
""",
}

# An interpreter: what it executes is a file of data, how much it checks a flag.
MACHINE = {
    "machine.c": """\
#include <stdio.h>

#ifndef CHECKS
#define CHECKS 1
#endif

static int program[64], stack[64];

static int valid(const int *from, int depth)
{
    int sum = 0;
    for (int i = 0; i < depth * CHECKS; i++)
        sum += from[i % 64];
    return sum;
}

static int step(int *depth, int word)
{
    if (word > 0)
        stack[(*depth)++ & 63] = word;
    else if (*depth > 1)
        stack[--*depth - 1 & 63] += stack[*depth & 63];
    return valid(stack, *depth & 15);
}

static int execute(int count, int times)
{
    int depth = 0, sum = 0;
    for (int i = 0; i < times; i++)
        for (int at = 0; at < count; at++)
            sum += step(&depth, program[at]);
    return sum + stack[0];
}

int main(void)
{
    int count = 0, times = 0;
    FILE *file = fopen("program.txt", "r");
    if (!file || fscanf(file, "%d", &times) != 1)
        return 1;
    while (count < 64 && fscanf(file, "%d", &program[count]) == 1)
        count++;
    fclose(file);
    printf("%d\\n", execute(count, times));
    return 0;
}
""",
    "program.txt": "400\n3 4 0 5 0 6 7 8 0 0 0\n",
}


COMMITS = (
    ExplainedCommit(
        "a loop of a function that is inlined twice over", "classify", TOKENS,
        [("tokens.c", "    if (letter >= 'a' && letter <= 'z')\n        return 1;\n    for (", "    for ("),
         ("tokens.c", "    return 3;\n}", "    return letter >= 'a' && letter <= 'z' ? 1 : 3;\n}"),
         ("tokens.h", '"hello"', '"good day"')],
    ),
    ExplainedCommit(
        "a function of the library in a loop that is inlined", "count_words", TOKENS,
        [("tokens.c", "words += now && !inside;", "words += now && !inside && strcspn(at, delimiters) < 30;"),
         ("tokens.h", "SEED 17", "SEED 19")],
    ),
    ExplainedCommit(
        "an early end that is gone, so that another function runs more often", "find_open", BRACKETS,
        [("brackets.c", "        return one;\n    }\n", "        if (from - one > 20)\n            "
          "return one;\n    }\n")],
    ),
    ExplainedCommit(
        "a hash that is cheaper and worse", "hash_of", TABLE,
        [("table.c", "    while (*key)\n        sum = sum * 33 + (unsigned char)*key++;\n",
          "    for (int i = 0; key[i] && i < 2; i++)\n        sum = sum * 33 + (unsigned char)key[i];\n"),
         ("table.c", "int sum = 0;\n    for (int i = 0; i < BUCKETS", "int sum = 0;\n    for "
           "(unsigned i = 0; i < BUCKETS")],
    ),
    ExplainedCommit(
        "a constant that a macro of a header defines", "BUCKETS", TABLE,
        [("table.h", "BUCKETS 1024", "BUCKETS 16")],
    ),
    ExplainedCommit(
        "a macro with arguments", "MIX", PICTURE,
        [("pixel.h", "((value) * 3 + 1)", "(((value) * 3 + 1) % 251 / 7 * (value) % 17)")],
    ),
    ExplainedCommit(
        "an inline function of a header", "average", PICTURE,
        [("pixel.h", "(unsigned char)clamp((one + other) / 2)",
          "(unsigned char)clamp((one * 77 + other * 179) / (one % 5 + 251))")],
    ),
    ExplainedCommit(
        "an inline function that inline functions use", "clamp", PICTURE,
        [("pixel.h", "    return value < 0 ?",
          "    for (int i = 0; i < value % 8; i++)\n        value -= value & i;\n    return value < 0 ?"),
         ("picture.c", "(unsigned char)(x * y)", "(unsigned char)(y * x)")],
    ),
    ExplainedCommit(
        "a constant of a header", "passes", PICTURE,
        [("pixel.h", "passes = 4", "passes = 9")],
    ),
    ExplainedCommit(
        "a search that a macro defines the head of", "search", OLD,
        [("old.c", "    int low = 0, high = count;\n    while (low < high) {\n"
          "        int middle = (low + high) / 2;\n        if (all[middle] == wanted)\n            "
          "return middle;\n"
          "        if (all[middle] < wanted)\n            low = middle + 1;\n        else\n         "
          "   high = middle;\n    }\n",
          "    for (int i = 0; i < count; i++)\n        if (all[i] == wanted)\n            return i;\n")],
    ),
    ExplainedCommit(
        "strlen() in a loop of a function in the style of K&R", "width_of", OLD,
        [("old.c", "    int width = 0, length = (int)strlen(text);\n    while (width < limit && "
          "width < length)",
          "    int width = 0;\n    while (width < limit && width < (int)strlen(text))"),
         ("old.c", "sum * 5 + *text++", "sum * 5 - *text++")],
    ),
    ExplainedCommit(
        "a comparison within std::sort that copies", "cheaper", SHOP,
        [("shop.cpp", "cheaper(const Item &one, const Item &other)", "cheaper(const Item one, const "
          "Item other)")],
    ),
    ExplainedCommit(
        "a lambda within std::sort", "main", SHOP,
        [("shop.cpp", "{ return cheaper(one, other); }",
          "{ return std::to_string(one.price).size() < 9 && cheaper(one, other); }")],
    ),
    ExplainedCommit(
        "a template of a header, inlined", "find", SHOP,
        [("flat_map.h", "return std::lower_bound(all_.begin(), all_.end(), key,\n                   "
          "             "
          "[](const auto &one, const Key &wanted) { return one.first < wanted; });",
          "auto place = all_.begin();\n        while (place != all_.end() && place->first < key)\n"
          "            ++place;\n        return place;")],
    ),
    ExplainedCommit(
        "a function of another file, inlined by LTO", "weight", GAME,
        [("score.c", "    return board->cells[cell] * (cell & 3);",
          "    int sum = 0;\n    for (int i = 0; i < cell; i++)\n        sum += board->cells[i] & i;\n"
          "    return sum * (cell & 3);")],
        FLAGS + " -flto",
    ),
    ExplainedCommit(
        "a loop of another file, by LTO, beside a change that costs nothing", "score", GAME,
        [("score.c", "i < 8", "i < 48"), ("game.c", "i * 31 % 17", "i * 29 % 17"),
         ("score.h", "#define SCORE_H", "#define SCORE_H\n/* the score of a board */")],
        FLAGS + " -flto",
    ),
    ExplainedCommit(
        "a constant of an enumeration", "CELLS", GAME,
        [("score.h", "CELLS = 64", "CELLS = 60000")],
    ),
    ExplainedCommit(
        "a file of data", "program.txt", MACHINE,
        [("program.txt", "400", "2600"), ("machine.c", "    int count = 0, times", "    int times = "
          "0, count")],
    ),
    ExplainedCommit(
        "a flag of the compiler", "Makefile", MACHINE, [("Makefile", "-O2", "-O0")],
    ),
    ExplainedCommit(
        "a definition on the command line of the compiler", "Makefile", MACHINE,
        [("Makefile", "-O2", "-O2 -DCHECKS=20"), ("machine.c", "    FILE *file =", "    FILE *const file =")],
    ),
)  # fmt: skip


def make(folder: Path, commit: ExplainedCommit) -> None:
    """Make a git repository of the program and the commit, which is HEAD; `make` builds `./prog`."""
    folder.mkdir()
    sources = " ".join(name for name in commit.files if name.endswith((".c", ".cpp")))
    headers = " ".join(name for name in commit.files if name.endswith(".h"))
    compiler = "g++" if ".cpp" in sources else "gcc"
    rule = f"prog: {sources} {headers} Makefile\n\t{compiler} {commit.flags} -o prog {sources}\n"
    files = {**commit.files, "Makefile": rule, ".gitignore": "prog\n.perun\n", "README": "A program.\n"}
    for name, text in files.items():
        (folder / name).write_text(text)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _keep(folder, "A program")
    for name, old, new in (*commit.edits, ("README", "A program", "A program, changed")):
        text = (folder / name).read_text()
        assert text.count(old) == 1, (commit.name, name, old)
        (folder / name).write_text(text.replace(old, new))
    _keep(folder, commit.name)


def _keep(folder: Path, subject: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", subject)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
