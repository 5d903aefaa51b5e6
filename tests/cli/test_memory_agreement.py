"""All views of one memory profile tell the same peak, total and leaks: each number is read from what the view
writes, and compared with the others."""

import io
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.plugin.registry import Registry
from perun.profile.amounts import readable
from perun.profile.factory import Profile, load_profile

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char text[24]; };
static struct node *list;
static void push(int i) {
    struct node *one = malloc(sizeof *one);
    memset(one, i, sizeof *one);
    one->next = list;
    list = one;
}
static void scratch(int i) { char *p = malloc(1000 + i); p[0] = 1; free(p); }
int main(void) {
    puts("a buffer of the C library");
    for (int i = 0; i < 5000; i++) push(i);
    for (int i = 0; i < 300; i++) scratch(i);
    char *big = calloc(1, 1500000);
    big = realloc(big, 1700000);
    free(big);
    for (int i = 0; i < 4000; i++) { struct node *one = list; list = one->next; free(one); }
    char *last = malloc(777);
    last[0] = 1;
    return 0;
}
"""
RUNS = {
    "sums": ("./list", ()), "single events": ("./list", ("--raw",)), "whole traces": ("./list", ("--all",)),
    "short snapshots": ("./list", ("--sampling", "0.001")),
    "without a function": ("./list", ("--no-func", "push")), "a program of the system": ("sort list.c", ())
}  # fmt: skip
NUMBERS = ("peak", "allocated", "leaked")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and its source."""
    folder = tmp_path_factory.mktemp("list")
    (folder / "list.c").write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-O0", "-o", "list", "list.c"], cwd=folder, check=True)
    return folder


@pytest.fixture(params=[
    pytest.param(name, marks=pytest.mark.slow if command != "./list" else ())
    for name, (command, _) in RUNS.items()
])  # fmt: skip
def profile(request: pytest.FixtureRequest, perun: Callable[..., Any], project: Any, built: Path) -> Profile:
    command, options = RUNS[request.param]
    shutil.copytree(built, project.path, dirs_exist_ok=True)
    told = perun("collect", "-c", command, "memory", *options).out
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    found = load_profile(path)
    # Where the command ends with a size, it is the peak that all views tell.
    assert set(re.findall(r"[\d.,]+ [KMG]?i?B\b", told)) <= {readable(found["memory"]["peak"], "B")}
    return found


def shown(profile: Profile, view: str, **params: Any) -> str:
    plugin = Registry().get("view", view)
    out = io.StringIO()
    plugin.render(profile, plugin.Params(**params), out)
    return out.getvalue()


def page_of(profile: Profile, view: str, folder: Path, **params: Any) -> dict[str, Any]:
    path = folder / f"{view}.html"
    shown(profile, view, filename=str(path), **params)
    found = re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"))
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def summary(profile: Profile) -> dict[str, str]:
    text = shown(profile, "memory")
    found = {}
    for name, start in (("peak", "peak heap"), ("allocated", "allocated"), ("leaked", "leaked")):
        match = re.search(rf"^{start} +([\d.,]+ [KMG]?i?B)", text, re.MULTILINE)
        assert match, text
        found[name] = match[1]
    allocations = re.search(r"^allocated .* in ([\d,]+) allocation", text, re.MULTILINE)
    temporary = re.search(r"^temporary +([\d,]+) allocation", text, re.MULTILINE)
    assert allocations and temporary
    return {**found, "count": allocations[1], "temporary": temporary[1]}


def table(profile: Profile) -> dict[str, int]:
    lines = shown(profile, "tableof", kind="resources", format="tsv").splitlines()
    names = [name.strip() for name in lines[0].split("\t")]
    sums: dict[str, int] = defaultdict(int)
    for line in lines[1:]:
        for name, cell in zip(names, line.split("\t"), strict=True):
            if name in ("amount", "peak", "leaked"):
                sums[name] += int(cell.strip() or 0)
    return {"peak": sums["peak"], "allocated": sums["amount"], "leaked": sums["leaked"]}


def folded(profile: Profile) -> dict[str, int]:
    found = {}
    for name, of in (("peak", "peak"), ("allocated", "amount"), ("leaked", "leaked")):
        lines = shown(profile, "flamegraph", format="folded", of=of).splitlines()
        found[name] = sum(int(line.rpartition(" ")[2]) for line in lines)
    return found


def flame_graph(profile: Profile, folder: Path) -> dict[str, int]:
    data = page_of(profile, "flamegraph", folder)
    assert [mode["name"] for mode in data["modes"]] == ["Peak", "Leaked", "Allocated", "Temporary", "Count"]
    assert data["of"] == "peak"
    return {mode["name"].lower(): sum(mode["amounts"][0]) for mode in data["modes"]}


def heap_map(profile: Profile, folder: Path) -> dict[str, Any]:
    data = page_of(profile, "heapmap", folder)
    live = [
        sum(
            amount
            for amount, first, end in zip(data["amounts"], data["firsts"], data["ends"], strict=True)
            if first <= now < end
        )
        for now in range(len(data["times"]))
    ]
    assert data["totals"]["peak"] == max(live)
    return {**data["totals"], "count": data["allocations"], "last": live[-1]}


def chart(profile: Profile, view: str, of: str, **params: Any) -> float:
    """The sum of the bars, or the height of the only line at its end."""
    plugin = Registry().get("view", view)
    (made,) = plugin.charts(profile, plugin.Params(of=of, **params))
    if view == "bars":
        return float(sum(series.value.sum() for series in made.series))
    return float(sum(series.y[-1] for series in made.series))


def test_all_views_tell_the_same_numbers(profile: Profile, tmp_path: Path) -> None:
    exact = table(profile)
    assert exact["peak"] > exact["leaked"] > 0 or "sort" in profile["header"]["cmd"]
    assert folded(profile) == exact
    flames = flame_graph(profile, tmp_path)
    assert {name: flames[name] for name in NUMBERS} == exact
    heap = heap_map(profile, tmp_path)
    assert {name: heap[name] for name in NUMBERS} == exact
    assert heap["count"] == flames["count"]
    assert heap["last"] >= exact["leaked"]
    told = summary(profile)
    assert {name: told[name] for name in NUMBERS} == {name: readable(exact[name], "B") for name in NUMBERS}
    assert told["count"] == f"{flames['count']:,}"
    assert told["temporary"] == f"{flames['temporary']:,}"
    for name, of in (("peak", "peak"), ("allocated", "amount"), ("leaked", "leaked")):
        assert chart(profile, "bars", of, per="type") == exact[name]
        assert chart(profile, "bars", of, per="snapshots", by="subtype") == exact[name]
        assert chart(profile, "flow", of, by="type") == exact[name]
        drawn = shown(profile, "bars", of=of, per="type", terminal=True)
        assert readable(exact[name], "B") in drawn
    listed = shown(profile, "alloclist")
    assert listed.endswith(f"total: {told['allocated']} in {told['count']} allocations\n")
    assert f"total: {told['allocated']}" in shown(profile, "alloclist", mode="sum")
    # What sums up the program says the same, and the totals of the profile too.
    whole = {
        resource["subtype"]: resource["amount"]
        for _, resource in profile.all_resources()
        if "memory" in resource["uid"] and "function" not in resource["uid"]
    }
    assert {name: whole[name] for name in NUMBERS} == exact
    assert {name: profile["memory"][name] for name in NUMBERS} == exact


def test_what_is_left_out_is_said(perun: Callable[..., Any], project: Any, built: Path) -> None:
    shutil.copytree(built, project.path, dirs_exist_ok=True)
    perun("collect", "-c", "./list", "memory", "--no-func", "push")
    text = perun("show", "0@p", "memory").out
    assert "left out     156 KiB of the peak and 156 KiB in 5,000 allocations, by --no-source or" in text
    assert "push" not in text.partition("Peak heap")[2]
    # The rows that sum others up are shown where they are asked for.
    assert "list:peak" in perun("show", "0@p", "tableof", "resources", "-f", "subtype", "peak").out
    assert "list:peak" not in perun("show", "0@p", "tableof", "resources").out


def test_what_has_no_name_is_told_with_its_reason(perun, project, built, tmp_path) -> None:
    subprocess.run(["strip", "-o", project.path / "list", built / "list"], check=True)
    perun("collect", "-c", "./list", "memory")
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    profile = load_profile(path)
    text = " ".join(shown(profile, "memory").split())
    assert "names of functions, sources and lines of list are unknown; compile with -g, or install" in text
    assert "the package with the debug symbols" in text  # no package has the program
    pages = [page_of(profile, view, tmp_path) for view in ("flamegraph", "heapmap")]
    for page in pages:
        assert any("names of functions, sources and lines of list" in note for note in page["notes"])
    assert all(re.fullmatch(r"list\+0x[0-9a-f]+|system libraries", name) for name in pages[0]["names"])
