"""A history of a C program, each commit of it traced: `perun check` names which made search quadratic."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traced import counted

SEARCH = """\
int list_search(const struct list *list, int key) {
    for (const struct node *node = list->first; node; node = node->next)
        if (same_key(node->key, key)) return 1;
    return 0;
}
"""
SEARCH_BY_POSITION = """\
static const struct node *list_at(const struct list *list, int position) {
    const struct node *node = list->first;
    while (position-- > 0 && !same_key(node->key, -2)) node = node->next;
    return node;
}
int list_search(const struct list *list, int key) {
    for (int position = 0; position < list->size; position++)
        if (same_key(list_at(list, position)->key, key)) return 1;
    return 0;
}
"""
LIST = """\
#include <stdlib.h>

struct node { int key; struct node *next; };
struct list { struct node *first; int size; };

static int same_key(int one, int other) { return one == other; }

void list_insert(struct list *list, int key) {
    struct node *node = malloc(sizeof *node);
    if (!node) abort();
    node->key = key;
    node->next = list->first;
    list->first = node;
    list->size++;
}
void list_clear(struct list *list) {
    while (list->first) {
        struct node *next = list->first->next;
        free(list->first);
        list->first = next;
    }
    list->size = 0;
}
$search
int main(void) {
    int found = 0;
    struct list list = {NULL, 0};
    for (int number = 0; number < 160; number++) {
        for (int key = number * 5 % 16; key >= 0; key--) list_insert(&list, key);
        found += list_search(&list, -1);
        list_clear(&list);
    }
    return found != 0;
}
"""
MATRIX = """\
vcs: {type: git, url: ..}
cmds: [./list]
collectors:
  - name: complexity
    params: {files: [list.c], rules: [list_search], compile_flags: '$flags'}
profiles: {register_after_run: true}
postprocessors:
  - name: regression_analysis
    params: {method: full, regression_models: [constant, linear, quadratic]}
degradation:
  strategies:
    - {collector: complexity, method: aat}
    - {collector: complexity, method: bmoe}
"""


@pytest.fixture(scope="session")
def counting(counting_runtime: Path) -> list[str]:
    """Perun with a runtime that counts what is executed: it is the same on a busy machine."""
    code = (
        "import pathlib, sys, perun.collect.complexity.collector as collector\n"
        f"collector.LIBRARY = pathlib.Path({str(counting_runtime)!r})\n"
        "from perun.__main__ import main\n"
        "sys.argv[0] = 'perun'\n"
        "main()"
    )
    return [sys.executable, "-P", "-c", code]


@pytest.fixture
def measure(perun: Callable[..., Any], counting: list[str]) -> Callable[[], None]:
    """Trace the current commit and register the profile with its models."""

    def measured() -> None:
        perun("run", "matrix", program=counting)

    return measured


@pytest.mark.slow
def test_the_commit_that_made_search_quadratic_is_named(project, perun, measure, counting_runtime) -> None:
    (project.path / ".perun/local.yml").write_text(MATRIX.replace("$flags", counted(counting_runtime)))
    by_links, by_position = (LIST.replace("$search", one) for one in (SEARCH, SEARCH_BY_POSITION))
    project.commit("Search keys in a list", {"list.c": by_links})
    measure()
    project.commit("Say what the list is for", {"list.c": "/* A list of keys. */\n" + by_links})
    measure()
    guilty = project.commit("Look nodes up by their positions", {"list.c": by_position})
    measure()

    answer = perun("check", "all", "--json").json
    assert answer["summary"]["compared"] == 2
    found = [
        (one["minor_version"], change["result"], change["location"], change["from"], change["to"])
        for one in answer["comparisons"]
        for change in one["changes"]
        if change["method"] == "best_model_order_equality"
    ]
    assert found == [(guilty, "Degradation", "list_search", "linear", "quadratic")]
    (average,) = (
        change
        for one in answer["comparisons"]
        for change in one["changes"]
        if one["minor_version"] == guilty and change["method"] == "average_amount_threshold"
    )
    assert (average["result"], average["location"]) == ("Degradation", "list_search")
    # A search of n keys looks at (n + 1) / 2 times as many nodes.
    assert average["rate"] > 2
    assert "Look nodes up by their positions" in perun("log", "--changes-only").out
