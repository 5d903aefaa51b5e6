"""`perun blame`: functions that were renamed, moved, inlined, made slower and faster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from measured_history import HOUR, START, import_stream
from perun.profile.factory import Profile
from perun.repository.repository import open_repository
from perun.store.pending import link

HEADER = '#include "work.h"\n'
DECLARED = "long alpha(long);\nlong beta(long);\nlong series(long);\nlong kernel(long);\n"
MAIN = "int main(void) { return alpha(3000) + series(500) == 7; }\n"
BUILD = "cc -O1 -g -I. -o app $(find . -name '*.c')\n"
ALPHA = "long alpha(long n) {\n  return CALL(n) + 1;\n}\n"
SERIES = (
    "long series(long n) {\n  long s = 1;\n  for (long i = 0; i < n; i++)\n    s += i * s;\n  return s;\n}\n"
)
INLINE = "static inline __attribute__((always_inline)) "
SLOW, FAST = "s ^= i + s / (i + 1) * 3;", "s += i;"


def loop(name: str, step: str) -> str:
    head = f"long {name}(long n) {{\n  long s = 7;\n"
    return f"{head}  for (long i = 0; i < n; i++)\n    {step}\n  return s;\n}}\n"


def work(called: str, *more: str) -> str:
    return "\n".join([HEADER, ALPHA.replace("CALL", called), SERIES, *more])


@pytest.fixture
def recorded(git_repository: Any, perun: Any) -> tuple[Path, dict[str, str]]:
    """A repository of which three of six commits are measured by callgrind, and the commits by subject."""
    repository = git_repository(commits=0)
    path, commits = repository.path, dict[str, str]()

    def commit(subject: str, files: Mapping[str, str], measured: bool = True) -> None:
        commits[subject] = repository.commit(subject, files)
        if measured:
            subprocess.run(["sh", "build.sh"], cwd=path, check=True)
            perun("collect", "-c", "./app", "instructions", cwd=path)
            perun("add", "0@p", cwd=path)

    base = {"build.sh": BUILD, "main.c": HEADER + MAIN, "work.h": DECLARED, ".gitignore": "app\n.perun\n"}
    repository.commit("Begin", base)
    perun("init", cwd=path)
    commit("One", {"work.c": work("beta", loop("beta", FAST))})
    commit("Slower", {"work.c": work("beta", loop("beta", SLOW))})
    commit("Rename", {"work.c": work("kernel", loop("kernel", SLOW))}, measured=False)
    commit("Move", {"work.c": work("kernel"), "lib/kernel.c": HEADER + loop("kernel", SLOW)}, measured=False)
    inlined = DECLARED.replace("long series(long);\n", INLINE + SERIES)
    faster = HEADER + loop("kernel", FAST)
    alone = HEADER + ALPHA.replace("CALL", "kernel")
    commit("Faster", {"work.h": inlined, "lib/kernel.c": faster, "work.c": alone})
    return path, commits


def former_of(function: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(one["version"], one["path"], one["function"]) for one in function["former"]]


def test_a_function_is_followed_and_what_is_not_known_is_said(
    recorded: tuple[Path, dict[str, str]], perun: Any
) -> None:
    path, commits = recorded
    answer = perun("blame", "lib/kernel.c", "--json", cwd=path).json
    (kernel,) = answer["functions"]
    faster, slower = kernel["changes"]
    assert (answer["versions"], answer["measured"]) == (6, 3)
    assert (faster["version"], slower["version"]) == (commits["Faster"], commits["Slower"])
    assert (slower["verdict"], faster["verdict"]) == ("SevereDegradation", "SevereOptimization")
    assert slower["exact"] and slower["ratio"] > 2 and slower["ratio"] == slower["ratio_low"]
    assert faster["possible"] == [commits[one] for one in ("Rename", "Move", "Faster")]
    assert former_of(kernel) == [(commits["Move"], "work.c", "kernel"), (commits["Rename"], "work.c", "beta")]
    told = perun("blame", "kernel.c", "kernel", cwd=path / "lib")
    assert "    renamed from beta\n" in told.out and "    moved from work.c\n" in told.out
    assert "or 2 versions before it, not measured" in told.out
    assert "3 of 6 versions have no profile" in told.err
    recent = perun("blame", "lib/kernel.c", "--since", "HEAD~1", cwd=path).out
    assert "renamed" not in recent and "Severe Optimization" in recent

    (series,) = perun("blame", "work.h", "--json", cwd=path).json["functions"]
    assert series["inlined"] > 500 and not series["changes"]
    assert former_of(series) == [(commits["Faster"], "work.c", "series")]
    old = perun("blame", "work.c", "-m", "HEAD~1", cwd=path)
    assert old.out.startswith("alpha (work.c:") and "no version changed what it costs" in old.out
    perun("blame", "work.cc", cwd=path, code=2, err="work.cc: there is no such file")
    perun("blame", "work.c", "nothing", cwd=path, code=2, err="there are: alpha")
    perun("blame", "build.sh", cwd=path, code=2, err="no function is found in it")


COUNT = 6
MIDDLE, MOVED, RENAMED, NEW = 10, 14, 16, 18
"""The versions in which `step1` becomes slower, the file moves, the function is renamed, and one is new."""


def functions_at(number: int) -> list[str]:
    names = ["add_up" if number >= RENAMED and place == 1 else f"step{place}" for place in range(COUNT)]
    return [*names, "latest"] if number >= NEW else names


def sampled(number: int) -> Profile:
    """Five runs with the CPU time of each function."""
    chance = np.random.default_rng(number)
    source = "shop/cart.py" if number >= MOVED else "shop.py"
    rows: list[dict[str, Any]] = []
    for order in range(5):
        costs = 1 + 0.01 * chance.standard_normal(COUNT + (number >= NEW))
        costs[1] *= 1.3 if number >= MIDDLE else 1
        places = [{"source": source, "function": name} for name in functions_at(number)]
        whole = {"source": "python3", "sample": "(total)"}
        for uid, cost in zip([whole, *places], [float(costs.sum()), *costs.tolist()], strict=True):
            amounts = {"amount": cost, "samples": round(500 * cost), "order": order}
            rows.append({"type": "sample", "subtype": "cpu", "uid": uid, **amounts})
    header = {
        "type": "sample",
        "units": {"sample": "s"},
        "cmd": "python3 -m shop",
        "args": "",
        "workload": "",
    }
    profile = Profile(
        {"header": header, "collector_info": {"name": "sample", "params": {}}, "postprocessors": [],
         "machine": {"cpu": {"model": "Fast", "total": 4}, "architecture": "x86_64"}}
    )  # fmt: skip
    profile.update_resources(rows)
    return profile


def sources(versions: int) -> str:
    """The commits as git imports them."""
    stream = ""
    for number in range(versions):
        text = "\n".join(
            f"def {name}(items):\n    return [{place} * one for one in items]\n"
            for place, name in enumerate(functions_at(number))
        )
        name = "shop/cart.py" if number >= MOVED else "shop.py"
        stream += f"commit refs/heads/main\nmark :{number + 1}\n"
        stream += f"committer A <a@b> {START + number * HOUR} +0000\ndata 1\n{number % 10}\n"
        stream += (f"from :{number}\n" if number else "") + ("D shop.py\n" if number == MOVED else "")
        stream += f"M 644 inline {name}\ndata {len(text)}\n{text}\n"
    return stream


def test_samples_are_judged_by_intervals_through_renames(git_repository: Any, perun: Any) -> None:
    repository = git_repository(commits=0)
    path = repository.path
    import_stream(path, sources(24))
    commits: Sequence[str] = repository.git("rev-list", "--reverse", "main").split()
    repository.git("reset", "-q", "--hard", "main")
    perun("init", cwd=path)
    (function, *_) = perun("blame", "shop/cart.py", "--json", cwd=path).json["functions"]
    assert function["series"] == [] and "no profile has it" in function["unknown"][0]
    store = open_repository(path, os.environ).store
    for number, checksum in enumerate(commits):
        link(store, checksum, [(sampled(number), f"sample-{number}.perf", START + number * HOUR)])
    found = perun("blame", "shop/cart.py", "--json", cwd=path).json["functions"]
    by_name = {one["function"]: one for one in found}
    (change,) = by_name["add_up"]["changes"]
    assert change["version"] == commits[MIDDLE] and change["decides"]
    assert change["ratio_low"] < 1.3 < change["ratio_high"]
    assert former_of(by_name["add_up"]) == [
        (commits[RENAMED], "shop/cart.py", "step1"), (commits[MOVED], "shop.py", "step1"),
    ]  # fmt: skip
    assert former_of(by_name["latest"]) == [(commits[NEW], None, None)]
    assert not any(one["changes"] for name, one in by_name.items() if name != "add_up")
    told = perun("changes", "--json", cwd=path).json["changes"]
    (same,) = (step for one in told for step in one["steps"] if step["location"] == "shop.py:step1")
    assert [same[key] for key in ("ratio", "ratio_low", "verdict")] == [
        change[key] for key in ("ratio", "ratio_low", "verdict")
    ]
