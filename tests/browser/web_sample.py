"""A static site of made-up data, for the tests of the pages: each piece as the interface describes it."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perun.profile.amounts import percent, readable_pair
from perun.web import pages

NOW = 1_795_000_000
CHUNK = 50
COMMANDS = ("./app big.txt", "./app small.txt", "./sort -n numbers")
FUNCTIONS = ("parse", "insert", "lookup", "rehash", "compare")


class Sample:
    """The pieces of a site.

    :param names: what takes the place of each name, subject and author; made-up ones if empty.
    :param commits: of the main line; 0 makes the site of an empty repository.
    """

    def __init__(self, commits: int = 300, names: Sequence[str] = (), measured: bool = True) -> None:
        self.random = random.Random(24)
        self.names = names
        self.count = commits
        self.measured = measured and commits > 0
        self.commits = [self._commit(at) for at in range(commits)]
        self.series = [self._series(number) for number in range(14)] if self.measured else []
        self.steps = self._steps() if self.measured else []
        self.values = [self._values(number) for number in range(len(self.series))]
        self.changes = [self._change(*step) for step in self.steps]

    def name(self, number: int, made_up: str) -> str:
        return self.names[number % len(self.names)] if self.names else made_up

    def _commit(self, at: int) -> dict[str, Any]:
        verbs = ("Speed up", "Rewrite", "Fix", "Extend", "Document", "Split")
        things = ("the parser", "hashing of keys", "the cache of tables", "errors of the reader", "sorting")
        author = self.random.choice(("Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov"))
        subject = f"{self.random.choice(verbs)} {self.random.choice(things)}"
        return {
            "checksum": f"{self.random.getrandbits(160):040x}", "date": NOW - (self.count - at) * 31_000,
            "author": self.name(at + 1, author), "subject": self.name(at, subject),
            "parents": [at - 1] if at else [],
            "tags": ["v1.4"] if at == self.count - 40 else ["v1.3"] if at == self.count // 3 else [],
            "branch": 0, "profiles": self._profiles(at) if self.measured and at % 7 != 3 else [],
            "damaged": "", "checks": self._checks(at)
        }  # fmt: skip

    def _checks(self, at: int) -> list[dict[str, Any]]:
        if not self.measured or at != self.count - 12:
            return []
        return [
            {"result": "Degradation", "location": self.name(4, "insert"), "before": "99.7 ms",
             "after": "257 ms", "rate": 2.6, "baseline": "0" * 40, "command": self.name(5, COMMANDS[0]),
             "word": "Degradation"}
        ]  # fmt: skip

    def _profiles(self, at: int) -> list[dict[str, Any]]:
        return [
            {"id": f"{at:06x}{number:02x}", "name": f"time-app-{at}-{number}.perf", "collector": "time",
             "command": self.name(number, command.split()[0]), "workload": command.split()[1],
             "time": NOW - 5000, "incomplete": None, "machine": 0, "views": ["flamegraph"]}
            for number, command in enumerate(COMMANDS)
        ]  # fmt: skip

    def _series(self, number: int) -> dict[str, Any]:
        command = COMMANDS[number % 3]
        timed = number % 4 != 3
        title = (
            f"{FUNCTIONS[number % 5]} [{'inclusive' if number > 6 else 'exclusive'}]"
            if number > 2
            else command
        )
        return {
            "id": f"{number:012x}", "title": self.name(number, title), "location": self.name(number, title),
            "command": self.name(number + 1, command), "collector": "time" if timed else "instructions",
            "metric": "real time" if timed else "instructions", "unit": "ms" if timed else "instr",
            "exact": not timed, "larger_is_better": number == 5, "latest": None, "latest_at": None,
            "interval": None, "spark": [], "changes": 0,
            "name": self.name(number, f"{command} [real]" if number < 3 else title), "text": ""
        }  # fmt: skip

    def _steps(self) -> list[tuple[int, int, float]]:
        end = self.count
        return [
            (1, end - 12, 1.34),
            (4, end - 12, 2.6),
            (3, end - 22, 0.88),
            (0, end // 2, 1.09),
            (2, end // 4, 0.71),
            (7, end - 33, 1.052),
        ]

    def _values(self, number: int) -> list[float | None]:
        level = 12.0 * 1.7**number
        noise = 0.0 if self.series[number]["exact"] else 0.012
        found: list[float | None] = []
        for at in range(self.count):
            for series, step, ratio in self.steps:
                if (series, step) == (number, at):
                    level *= ratio
            value = level * math.exp(self.random.gauss(0, noise)) * (1.5 if at == 100 and number == 6 else 1)
            found.append(float(f"{value:.6g}") if self.commits[at]["profiles"] else None)
        one = self.series[number]
        one["latest"], one["latest_at"] = found[-1], self.count - 1
        one["interval"] = None if one["exact"] or not found[-1] else [found[-1] * 0.99, found[-1] * 1.01]
        one["spark"] = found[-40:]
        one["text"] = f"{found[-1]:.3g} {one['unit']}" if found[-1] else ""
        return found

    def ref(self, at: int) -> dict[str, Any]:
        commit = self.commits[at]
        return {"at": at, **{key: commit[key] for key in ("checksum", "date", "author", "subject")}}

    def _change(self, number: int, at: int, ratio: float) -> dict[str, Any]:
        at = next(place for place in range(at, self.count) if self.commits[place]["profiles"])
        since = next(place for place in range(at - 1, 0, -1) if self.commits[place]["profiles"])
        series = self.series[number]
        before, after = self.values[number][since], self.values[number][at]
        assert before is not None and after is not None
        exact = series["exact"]
        start = max(0, at - 25)
        return {
            "version": self.ref(at), "since": self.ref(since), "possible": at - since, "series": series["id"],
            "title": series["title"], "location": series["location"], "command": series["command"],
            "machine": None if exact else 0, "unit": series["unit"], "exact": exact,
            "result": "Degradation" if ratio > 1 else "Optimization", "remark": "",
            "degradation": (ratio > 1) != series["larger_is_better"], "ratio": ratio,
            "interval": [ratio, ratio] if exact else [ratio * 0.97, ratio * 1.03],
            "before": {"value": before, "interval": [before * 0.99, before * 1.01], "versions": 60},
            "after": {"value": after, "interval": [after * 0.99, after * 1.01], "versions": 30},
            "acknowledged": {"until": "", "because": "the table is larger"} if number == 0 else None,
            "taken_back": "", "takes_back": "", "moved_with": [], "report": number == 4,
            "conditions": ["governor"] if number == 7 else [],
            "spark": {"value": self.values[number][start : at + 15], "change": at - start}, "decides": True,
            "word": "Degradation" if ratio > 1 else "Optimization",
            "text": percent(ratio - 1, None if exact else (0.97 * ratio - 1, 1.03 * ratio - 1)),
            "sides": list(readable_pair(before, after, series["unit"])), "name": series["name"]
        }  # fmt: skip

    def pieces(self) -> dict[str, Any]:
        """All pieces by name."""
        found: dict[str, Any] = {
            "site": self._site(), "history": self._history(), "series": {"series": self.series, "more": 0},
            "changes": {"changes": self.changes[::-1], "total": len(self.changes), "doubtful": []},
            "overview": self._overview(), "grid": self._grid(), "coverage": self._coverage()
        }  # fmt: skip
        for number in range(math.ceil(self.count / CHUNK)):
            part = slice(number * CHUNK, number * CHUNK + CHUNK)
            found[f"commits/{number}"] = {"first": part.start, "commits": self.commits[part]}
            found[f"values/{number}"] = {
                "first": part.start,
                "series": [one["id"] for one in self.series],
                "machine": [None if one["exact"] else 0 for one in self.series],
                "value": [values[part] for values in self.values],
                "half": [None if one["exact"] else [10_000] * len(self.commits[part]) for one in self.series],
            }
        for number, one in enumerate(self.series):
            found[f"series/{one['id']}"] = self._one(number)
        for change in self.changes:
            if change["report"]:
                names = f"{change['since']['checksum']}..{change['version']['checksum']}"
                found[f"compare/{names}"] = self._report(change)
                found[f"explained/{change['version']['checksum']}"] = self._explained(change)
        return found

    def _site(self) -> dict[str, Any]:
        end = self.count - 1
        return {
            "project": self.name(0, "hashtable"),
            "branch": "main",
            "head": self.commits[end]["checksum"] if self.count else None,
            "generated": NOW,
            "commits": self.count,
            "measured": sum(bool(one["profiles"]) for one in self.commits),
            "profiles": 3 * self.count,
            "chunk": CHUNK,
            "piece": 2048,
            "series": len(self.series),
            "can_acknowledge": False,
            "state": "0",
            "pending": 0,
            "feed": True,
            "hint": "",
            "explained": [one["version"]["at"] for one in self.changes if one["report"]],
            "machines": ["lab-1", self.name(2, "laptop")],
            "branches": [{"name": "main", "at": end}, {"name": self.name(3, "robin-hood"), "at": end}]
            if self.count
            else [],
            "tags": [{"name": "v1.3", "at": self.count // 3}, {"name": "v1.4", "at": self.count - 40}]
            if self.count
            else [],
            "problems": [],
            "running": None,
        }

    def _history(self) -> dict[str, Any]:
        dates = [one["date"] for one in self.commits]
        return {
            "checksums": "".join(one["checksum"][:8] for one in self.commits),
            "dates": differences(dates),
            "line": [0] * self.count,
            "measured": "".join("1" if one["profiles"] else "." for one in self.commits),
        }

    def _overview(self) -> dict[str, Any]:
        places = [at for at in range(self.count) if self.commits[at]["profiles"]][-60:]
        rows = [self._row(number, places) for number in range(len(self.series))]
        sentence = "2 changes made 2 of 14 benchmarks worse since v1.4: most compare [exclusive] +160 %."
        none = {
            "sentence": "Nothing is measured yet", "kind": "unknown", "tag": None, "worse": 0, "better": 0,
            "same": 0, "unknown": 0, "details": "", "acknowledged": 0, "changes": 0, "doubtful": 0,
            "decides": ""
        }  # fmt: skip
        return {
            "verdict": none
            if not self.measured
            else {
                "sentence": self.name(0, sentence), "kind": "worse",
                "tag": {"name": "v1.4", "at": self.count - 40, "date": self.commits[-40]["date"]}, "worse": 2,
                "better": 1, "same": 10, "unknown": 1, "acknowledged": 1, "changes": 3, "doubtful": 2,
                "decides": "perun compare 0123456 1234567 -c ./app -w big.txt",
                "details": "34 of 40 commits since then are measured. One series is too noisy to say."
            },
            "changes": sorted(self.changes, key=lambda one: (bool(one["acknowledged"]), -one["ratio"])),
            "total": len(self.changes),
            "heat": {"commits": [self.ref(at) for at in places], "rows": rows},
            "benchmarks": [self._benchmark(*own) for own in ((0, 1, 2), *((i,) for i in range(3, 14)))]
            if self.measured
            else [],
            "more": 0,
            "record": [dict(month="2026-10", alerts=2, acknowledged=1, taken_back=0)][: self.measured],
        }  # fmt: skip

    def _benchmark(self, *numbers: int) -> dict[str, Any]:
        members = []
        for number in numbers:
            one = self.series[number]
            change = next((step for step in self.changes if step["series"] == one["id"]), None)
            members.append({
                "series": one, "machine": None if one["exact"] else 0,
                "state": "same" if change is None else "worse" if change["degradation"] else "better",
                "change": change, "spark": self.values[number][-60:], "spark_at": [],
                "parts": [other["id"] for other in self.series[3:6]] if number < 3 else []
            })  # fmt: skip
        name = self.series[numbers[0]]["name"]
        return {"name": name, "metric": "real time", "members": members, "group": ""}

    def _row(self, number: int, places: Sequence[int]) -> dict[str, Any]:
        one = self.series[number]
        return {
            "series": one["id"], "title": one["title"], "unit": one["unit"],
            "larger_is_better": one["larger_is_better"], "machine": None if one["exact"] else 0,
            "value": [self.values[number][at] for at in places], "command": one["command"],
            "name": one["name"]
        }  # fmt: skip

    def _grid(self) -> dict[str, Any]:
        places = [at for at in range(self.count) if self.commits[at]["profiles"]]
        return {
            "at": places,
            "rows": [self._row(number, places) for number in range(len(self.series))],
            "more": 0,
        }

    def _coverage(self) -> dict[str, Any]:
        rows = []
        for number, command in enumerate(COMMANDS if self.measured else ()):
            cells = "".join("1" if one["profiles"] else "." for one in self.commits)
            cells = "." * (40 * number) + cells[40 * number :]
            rows.append({
                "title": self.name(number, command), "collector": "time", "command": command,
                "workload": "", "machine": 0, "cells": cells[:60] + "d" + cells[61:]
            })  # fmt: skip
        missing = [
            {"title": self.name(1, "./sort -n numbers"), "count": 120, "machine": 0,
             "command": "perun run matrix"}
        ]  # fmt: skip
        return {
            "rows": rows,
            "at": differences(range(self.count)),
            "missing": missing if rows else [],
            "fuzzed": [
                {"name": self.name(6, "slow-3.txt"), "size": 4096, "date": NOW, "titles": [], "measured": 0}
            ]
            if rows
            else [],
        }

    def _one(self, number: int) -> dict[str, Any]:
        one, values = self.series[number], self.values[number]
        lines = [self._line(0, 0, {at: value for at, value in enumerate(values) if value is not None})]
        if not one["exact"]:
            others = {
                at: value * 1.25 for at, value in enumerate(values) if value is not None and at % 3 == 0
            }
            lines.append(self._line(1, 0, others))
            branch = {
                at: value * 0.93
                for at, value in enumerate(values)
                if value is not None and at > self.count - 60
            }
            lines.append(self._line(0, 1, branch))
        return {
            "series": one,
            "configuration": {
                "collector": one["collector"], "cmd": one["command"], "args": "", "workload": "",
                "postprocessors": []
            },
            "lines": lines,
            "tail": 0,
            "chunks": [],
            "changes": [change for change in self.changes if change["series"] == one["id"]],
            "related": [other["id"] for other in self.series if other is not one][:6],
        }  # fmt: skip

    def _line(self, machine: int, branch: int, points: Mapping[int, float]) -> dict[str, Any]:
        return {
            "machine": machine, "branch": branch, "at": differences(points), "value": list(points.values()),
            "half": [self.random.randrange(6000, 24000) for _ in points], "n": 10
        }  # fmt: skip

    def _report(self, change: Mapping[str, Any]) -> dict[str, Any]:
        def side(value: float) -> dict[str, Any]:
            text = f"{value:.3g} ms"
            told = {"text": text, "whole": f"{text} ± {value * 0.02:.1g}"}
            return {"value": value, "interval": [value * 0.98, value * 1.02], "n": 30, **told}

        rows = []
        for number, name in enumerate((*FUNCTIONS, "hash", "grow")):
            ratio = (2.6, 1.31, 1.002, 0.997, 0.82, 1.0, 1.01)[number]
            result = "Degradation" if ratio > 1.2 else "Optimization" if ratio < 0.9 else "NoChange"
            rows.append({
                "location": self.name(number, name), "metric": "exclusive", "unit": "ms", "exact": False,
                "larger_is_better": False, "series": self.series[number]["id"], "a": side(3.0 + number),
                "b": side((3.0 + number) * ratio), "ratio": ratio,
                "interval": [ratio * 0.97, ratio * 1.03], "result": result,
                "reason": "12 lines of it changed in table.c:40" if number == 0 else "",
                "word": result.replace("NoC", "No C"),
                "text": percent(ratio - 1, (0.97 * ratio - 1, 1.03 * ratio - 1))
            })  # fmt: skip
        draw = [self.random.gauss(10, 0.4) for _ in range(30)]
        samples = [
            {"name": self.name(0, "real time"), "unit": "ms", "a": draw, "b": [one * 1.3 for one in draw]}
        ]
        return {
            "a": change["since"],
            "b": change["version"],
            "notes": [self.name(1, "The governor was powersave.")],
            "cases": [
                {"title": self.name(2, "./app big.txt"), "rows": rows, "samples": samples, "flame": None,
                 "models": [{"name": self.name(3, "insert"), "a": "2.1 us * n", "b": "0.3 us * n^2"}]}
            ],
        }  # fmt: skip

    def _explained(self, change: Mapping[str, Any]) -> dict[str, Any]:
        def cost(metric: str, before: float, after: float) -> dict[str, Any]:
            return {
                "metric": metric, "unit": "B" if metric == "peak" else "instr", "before": before,
                "after": after, "ratio": after / before, "interval": None, "share": (after - before) / 4e6,
                "text": f"{before:.3g} -> {after:.3g}  {percent(after / before - 1)}",
                "of_whole": percent((after - before) / 4e6)
            }  # fmt: skip

        lines = [
            {"mark": " ", "old": 40, "new": 40, "text": "static bool insert(table *t, long key)"},
            {"mark": "-", "old": 41, "new": 0, "text": self.name(0, "    return place(t, hash(key));")},
            {"mark": "+", "old": 0, "new": 41, "text": self.name(1, "    for (long i = 0; i < t->n; i++)")},
            {"mark": "+", "old": 0, "new": 42, "text": "        if (t->keys[i] == key) return false;"},
        ]
        sentence = "insert() executes 2.6x the instructions [exact], 1.2 M -> 3.1 M instr"
        worse = {
            "location": "table.c:insert", "sentence": self.name(2, sentence), "worse": True,
            "costs": [cost("instructions", 1.2e6, 3.1e6), cost("peak", 4096, 8192)],
            "growth": ["12 * n", "0.3 * n^2"],
            "diffs": [{"place": self.name(3, "src/table.c:40-58"), "lines": lines, "more": 3}]
        }  # fmt: skip
        better = {**worse, "sentence": self.name(4, "hash() executes 0.82x the instructions [exact]")}
        better |= {"worse": False, "costs": [cost("instructions", 1e6, 8.2e5)], "growth": None, "diffs": []}
        case = {
            "title": self.name(5, "./app big.txt"), "totals": [cost("instructions", 4e6, 5.7e6)],
            "functions": [worse, better], "more": 0, "smaller": 4,
            "unseen": [self.name(6, "calls: those of Python functions are not recorded")]
        }  # fmt: skip
        return {
            "a": change["since"], "b": change["version"], "notes": [], "cases": [case],
            "others": [self.name(7, "Makefile (build): +1 -1")]
        }  # fmt: skip

    def write(self, folder: Path) -> Path:
        """Write the static site; the file of its first page."""
        project = self._site()["project"]
        for page in pages.PAGES:
            (folder / pages.file_name(page)).write_text(
                pages.html(page, project=project, live=False), "utf-8", "replace"
            )
        for name, content in pages.assets().items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        for name, data in self.pieces().items():
            path = folder / "data" / f"{name}.js"
            path.parent.mkdir(parents=True, exist_ok=True)
            schema = f"perun.web.{name.partition('/')[0]}/1"
            path.write_text(pages.piece(name, json.dumps({"schema": schema, **data})), "utf-8")
        return folder / "index.html"


def differences(values: Any) -> list[int]:
    """The first value, then by how much each is larger than the one before."""
    numbers = list(values)
    return [one - before for one, before in zip(numbers, [0, *numbers], strict=False)]
