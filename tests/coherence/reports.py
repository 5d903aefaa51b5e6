"""What the reports of `perun check`, `perun explain` and the dashboard say of a history beside what `check`
and `log` say."""

from __future__ import annotations

import html
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from asking import Answers, Asked, Key, Said, close
from invariants import alike, definite, newest

from perun.measurement.present import NAMES
from perun.measurement.present import name as word_of
from perun.profile.amounts import percent
from perun.profile.changes import PerformanceChange
from perun.repository.repository import open_repository
from perun.web.data.pieces import Pieces
from perun.web.data.state import WebState, load
from perun.web.live import atom


def reports(asked: Asked, told: Answers) -> list[str]:
    """`check` says the same in all its formats, and `explain`, the grid and the feed of the dashboard tell
    the same series by the same numbers and words."""
    answer = asked.json("-v", "check", "all")
    state = load(open_repository(asked.folder, asked.environ))
    of_pages = (*grid(asked, state, told), *feed(asked, state, told))
    return [*formats(asked, answer), *of_pages, *explained(asked, told)]


def formats(asked: Asked, answer: Mapping[str, Any]) -> Iterator[str]:
    """Each change of the JSON is one of each report: its place, its word, and its ratio as it is printed."""
    wanted: list[tuple[str, ...]] = []
    for one in answer["comparisons"]:
        command = " ".join(filter(None, (one["cmd"], one["args"], one["workload"])))
        for change in one["changes"]:
            text = _ratio(change["ratio"], change["ratio_low"], change["ratio_high"])
            verdict = PerformanceChange[change["verdict"]]
            word = word_of(verdict, confirmed=change["confirmed"], limit=change["limit"])
            wanted.append((one["minor_version"][:10], command, change["location"], word, text))
    found = {
        name: told_in(asked.perun("-v", "check", "all", "--format", name))
        for name, told_in in (("markdown", _markdown), ("junit", _junit), ("sarif", _sarif))
    }
    for form, rows in found.items():
        # JUnit has no message where nothing changed: the test passed.
        own = [one for one in wanted if form != "junit" or one[3] != "No Change"]
        for one in own:
            if not any(_is_told(one, row) for row in rows):
                yield f"{form} does not tell {one}: {[row for row in rows if row[2] == one[2]]}"
        if len(rows) != len(own):
            yield f"{form} tells {len(rows)} changes, JSON {len(own)}"


def _is_told(wanted: Sequence[str], row: Sequence[str]) -> bool:
    return tuple(wanted[:4]) == tuple(row[:4]) and wanted[4] in row[4]


def _markdown(text: str) -> list[tuple[str, ...]]:
    rows, version, command = [], "", ""
    for line in html.unescape(text).replace("<code>", "`").replace("</code>", "`").splitlines():
        if line.startswith("### "):
            version = line.split("`")[1]
        elif match := re.match("`(.*?)` of `(.*?)` against", line):
            command = match[2]
        elif line.startswith("| ") and not line.startswith(("| change", "| :--")):
            cells = [one.strip().strip("`") for one in line.strip("| ").split(" | ")]
            word = cells[0].replace("**", "").replace(" :rotating_light:", "")
            rows.append((version, command, cells[1], word, cells[4]))
    return rows


def _junit(text: str) -> list[tuple[str, ...]]:
    rows = []
    for suite in ElementTree.fromstring(text):
        for case in suite.iter("testcase"):
            for one in case:
                if (
                    ": " in (one.text or "")
                    and one.tag != "error"
                    and not suite.attrib["name"].startswith("comparison")
                ):
                    word, _, values = str(one.text).partition(": ")
                    command = case.attrib["classname"].partition(" ")[2]
                    version = suite.attrib["name"].rpartition(" ")[2]
                    rows.append((version, command, case.attrib["name"], word, values))
    return rows


def _sarif(text: str) -> list[tuple[str, ...]]:
    rows = []
    for one in json.loads(text)["runs"][0]["results"]:
        (place,) = one["locations"][0]["logicalLocations"]
        command = place["fullyQualifiedName"].removesuffix(f"::{place['name']}")
        word, _, values = one["message"]["text"].partition(f" at {place['name']}: ")
        version = one["properties"]["minor_version"][:10]
        rows.append((version, command, place["name"], word, values))
    return rows


def grid(asked: Asked, state: WebState, told: Answers) -> Iterator[str]:
    """The dashboard's grid has the values of `log`."""
    piece: Any = Pieces(state, "now").piece("grid")
    for row in piece.rows:
        series = state.groups[row.series].key
        machine = "" if row.machine is None else state.machines[row.machine]
        for place, value in zip(piece.at, row.value, strict=True):
            key = Key(state.commits.versions[place].checksum, *series.configuration[:4], machine)
            if key in told and asked.location(key) == series.location and not alike(value, told[key].value):
                yield f"the grid has {value}, log {told[key]} {key}"


def feed(asked: Asked, state: WebState, told: Answers) -> Iterator[str]:
    """Each definite change of neighbours is in the feed, with its series, word and ratio as they are
    printed."""
    entries: defaultdict[str, list[str]] = defaultdict(list)
    names = set()
    for one in ElementTree.fromstring(atom(state, "")).iter(f"{_ATOM}entry"):
        found = {name: one.findtext(f"{_ATOM}{name}", "") for name in ("id", "content")}
        if found["id"] in names:
            yield f"the feed has two entries with the id {found['id']}"
        names.add(found["id"])
        entries[found["id"].split(":")[2]] += found["content"].splitlines()
    main = set(asked.first_parents)
    for key, said in told.items():
        if key.version not in main or said.since not in main or not definite(said.verdict):
            continue
        assert said.verdict is not None
        command = " ".join(filter(None, key[2:5]))
        wanted = command, f" {NAMES[PerformanceChange[said.verdict]]}, ", _ratio(*said[4:7])
        lines = entries[key.version]
        if not any(all(one in line for one in wanted) for line in lines):
            yield f"the feed does not tell {wanted} of {key}: {lines}"


def explained(asked: Asked, told: Answers) -> Iterator[str]:
    """What `explain` says of whole programs is what `log` says of the headlines."""
    for version in newest(told):
        own = {key: said for key, said in told.items() if key.version == version and said.since}
        for since in {said.since for said in own.values()}:
            alone = {key: said for key, said in own.items() if said.since == since}
            # A comparison has one machine of a configuration; and what does not compare is not explained.
            plain = [key._replace(machine="") for key in own]
            compared = {
                key: said for key, said in alone.items()
                if plain.count(key._replace(machine="")) == 1 and "not comparable" not in (said.reason or "")
            }  # fmt: skip
            if not compared:
                continue
            answer = asked.json("explain", "--no-collect", f"{since}..{version}")
            cases = {case["command"]: case["totals"] for case in answer["configurations"]}
            for key, said in compared.items():
                totals = cases.get(" ".join(filter(None, key[2:5])), [])
                yield from _explained(asked, key, said, totals)


def _explained(asked: Asked, key: Key, said: Said, totals: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    location = asked.location(key)
    found = [one for one in totals if one["location"] == location]
    if len(found) != 1:
        yield f"explain tells {len(found)} times of {location}, log {said} {key}: {totals}"
        return
    names = "verdict", "ratio", "ratio_low", "ratio_high"
    for name, value in (("after", said.value), *((one, getattr(said, one)) for one in names)):
        one = found[0][name]
        if not (close(one, value) if isinstance(value, float) else one == value):
            yield f"explain: {name} is {one}, in log {value}: {key} {said}"


def _ratio(ratio: float | None, low: float | None, high: float | None) -> str:
    """How a ratio is printed; to and from 0 there is none."""
    if not ratio:
        return ""
    bounds = None if low is None or low == high else (low - 1, math.inf if high is None else high - 1)
    return percent(ratio - 1, bounds)


_ATOM = "{http://www.w3.org/2005/Atom}"
