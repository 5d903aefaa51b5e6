"""What has to hold of the answers to one history: each function tells what contradicts what."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from asking import Answers, Asked, Key, Said, check, close, contradictions, log, status, trend

from perun.measurement import present
from perun.measurement.verdict import severity
from perun.profile.amounts import percent
from perun.profile.changes import PerformanceChange
from perun.repository.repository import open_repository
from perun.web.data.pieces import Pieces
from perun.web.data.state import load

DIGITS = 6e-6
"""By how much numbers of six digits may be off."""


def definite(word: str | None) -> bool:
    """Whether it is a definite change."""
    return word is not None and abs(severity(PerformanceChange[word])) > 1


def newest(answers: Answers) -> list[str]:
    """The checksums of the newest measured versions: of one, or of more in longer histories."""
    return list(dict.fromkeys(key.version for key in answers))[: max(len(answers) // 15, 1)]


# -- one history, all commands -------------------------------------------------------------------------------


def lists(asked: Asked, told: Answers) -> list[str]:
    """`trend` and `status` say what `log` says."""
    main = set(asked.first_parents)
    of_main = {key: said for key, said in told.items() if key.version in main}
    found = contradictions("log and trend", of_main, trend(asked))
    versions = newest(told)
    own = {key: said for key, said in told.items() if key.version in versions}
    return [*found, *contradictions("log and status", own, status(asked, versions))]


def checks(asked: Asked, told: Answers) -> list[str]:
    """`check all` and `check head` say what `log` says of each version beside the one before.

    Where the version before was measured on other machines only, lists have none, and check says Unknown.
    """
    every = check(asked, "all")
    found = contradictions("check head and all", check(asked, "head"), every)
    for key, said in every.items():
        listed = told.get(key)
        if listed is None:
            found.append(f"only check has {key}: {said}")
        elif said.verdict == "Unknown" and said.reason is None:
            if listed.verdict not in (None, "Unknown"):
                found.append(f"check: not comparable; log: {listed} {key}")
        elif said.verdict == "":
            if definite(listed.verdict):
                found.append(f"check says nothing; log: {listed} {key}")
        else:
            wanted = listed._replace(low=None, high=None)
            found += contradictions("check and log", {key: said}, {key: wanted})
    return found


def pairs(asked: Asked, told: Answers) -> list[str]:
    """`check diff` of a version and the one before says what lists say, and mirrors the other order."""
    found = []
    for version in newest(told):
        before = {said.since for key, said in told.items() if key.version == version and said.since}
        for since in before:
            forth = check(asked, "diff", since, version)
            back = check(asked, "diff", version, since, like=version)
            for key, said in forth.items():
                if told[key].since != since or said.reason is None:
                    continue
                wanted = told[key]._replace(low=None, high=None)
                found += contradictions("check diff and log", {key: said}, {key: wanted})
                turned = back.get(key._replace(version=since))
                if turned is not None and turned.reason is not None:
                    found += mirrored(key, said, turned)
    return found


def mirrored(key: Key, said: Said, turned: Said) -> Iterator[str]:
    """What the other order of two versions has to say."""
    assert said.verdict is not None and turned.verdict is not None
    one, other = (severity(PerformanceChange[word]) for word in (said.verdict, turned.verdict))
    bounds = (said.ratio_low, said.ratio_high), (turned.ratio_high, turned.ratio_low)
    if one != -other or said.verdict == "Unknown" != turned.verdict:
        yield f"{key}: {said.verdict}, and the other way round {turned.verdict}"
    for mine, its in ((said.ratio, turned.ratio), *zip(*bounds, strict=True)):
        if mine and its and not math.isclose(mine, 1 / its, rel_tol=1e-9):
            yield f"{key}: {mine}, and the other way round {its}, {1 / its}"


def steps_of(asked: Asked, *arguments: str) -> dict[Key, dict[str, Any]]:
    """The steps of headlines, by series and version."""
    found = {}
    for version in asked.json("changes", *arguments)["changes"]:
        for step in version["steps"]:
            series = (step[name] for name in ("collector", "cmd", "args", "workload", "machine"))
            key = Key(version["version"], *series)
            if step["headline"] and step["location"] == asked.location(key):
                found[key] = {**step, "since": version["since"]}
    return found


def changes(asked: Asked, told: Answers) -> list[str]:
    """Each definite verdict of neighbours is a change with the same numbers, each doubtful one a doubtful
    change; and no change of two single versions is told that the verdict denies.

    A series that begins on the line with a merge has no level there that it could leave.
    """
    main, found = set(asked.first_parents), []
    steps = steps_of(asked)
    for key, said in told.items():
        if key.version not in main or said.since not in main or said.verdict is None:
            continue
        step = steps.get(key)
        if definite(said.verdict):
            if step is None or not step["decides"]:
                found.append(f"definite, and no change: {key} {said} {step}")
                continue
            for name in ("ratio", "ratio_low", "ratio_high", "verdict", "reason", "since"):
                one, other = getattr(said, name), step[name]
                if not (close(one, other) if isinstance(one, float) else one == other):
                    found.append(f"{name} is {one} in log and {other} in changes: {key}")
        elif severity(PerformanceChange[said.verdict]) and step is None:
            found.append(f"doubtful, and no doubtful change: {key} {said}")
        elif step and step["decides"] and 1 == step["before"]["versions"] == step["after"]["versions"]:
            found.append(f"a change of two versions that log denies: {key} {said} {step}")
    return [*found, *(f"a change without a value: {key}" for key in steps.keys() - told.keys())]


def texts(asked: Asked, told: Answers) -> list[str]:
    """The same number is the same text wherever it is printed."""
    found: list[str] = []
    lines = asked.perun("trend").splitlines()
    for version in newest(told):
        of_status, of_check = asked.perun("status", version), asked.perun("-v", "check", "head", version)
        for key, said in told.items():
            if key.version != version or said.ratio is None or said.ratio_low is None:
                continue
            assert said.ratio_high is not None
            bounds = None if said.ratio_low == said.ratio_high else (said.ratio_low - 1, said.ratio_high - 1)
            text = percent(said.ratio - 1, bounds)
            rows = [line for line in lines if line.startswith(version[:7])]
            if rows and version in asked.first_parents and not any(text in row for row in rows):
                found.append(f"trend does not say {text} {key}: {rows}")
            if "not comparable" in (said.reason or ""):
                continue
            # Far bounds are infinite to people: only lists say so.
            if said.ratio_high > 1000 * max(said.ratio, 1.0):
                continue
            short = text.partition(" [")[0]
            found += [
                f"{name} does not say {text} {key}"
                for name, answer in (("status", of_status), ("check", of_check))
                if text not in answer and short not in answer
            ]
            assert said.verdict is not None and said.confirmed is not None
            word = present.name(PerformanceChange[said.verdict], confirmed=said.confirmed, limit=said.limit)
            rows = [line for line in of_check.splitlines() if short in line]
            if not any(row.lstrip(" *|").startswith(f"{word}  ") for row in rows):
                found.append(f"check does not call {text} {word} {key}: {rows}")
    return found


def pages(asked: Asked, told: Answers) -> list[str]:
    """What the dashboard shows: the values of `log`, and of two versions what it says of them."""
    state = load(open_repository(asked.folder, asked.environ))
    pieces = Pieces(state, "now")
    found = []
    for group in state.groups.values():
        for line in pieces.piece(f"series/{group.id}").lines:  # type: ignore[union-attr]
            place = 0
            machine = "" if line.machine is None else state.machines[line.machine]
            for number, (step, value) in enumerate(zip(line.at, line.value, strict=True)):
                place += step
                key = Key(state.commits.versions[place].checksum, *group.key.configuration[:4], machine)
                said = told.get(key)
                if said is None or asked.location(key) != group.key.location:
                    continue
                size = line.n if isinstance(line.n, int) else line.n[number]
                if not alike(value, said.value) or size != said.size:
                    found.append(f"the page of a series has {value} of {size}, log {said} {key}")
    versions = newest(told)
    for key, said in told.items():
        if key.version in versions and said.since and said.reason and "not comparable" not in said.reason:
            found += _compared(asked, pieces, key, said)
    return found


def _compared(asked: Asked, pieces: Pieces, key: Key, said: Said) -> Iterator[str]:
    title = f"{' '.join(filter(None, key[2:5]))} ({key.collector})"
    piece = pieces.piece(f"compare/{said.since}..{key.version}")
    location = asked.location(key)
    cases = [case for case in piece.cases if case.title == title]  # type: ignore[union-attr]
    rows = [row for case in cases for row in case.rows if row.location == location]
    if len(rows) != 1:  # several classes of machines
        return
    (row,) = rows
    bounds = row.interval or (None, None)
    one = row.result, row.b.value, row.ratio, *bounds
    if row.result != said.verdict or not all(
        map(alike, one[1:], (said.value, said.ratio, said.ratio_low, said.ratio_high))
    ):
        yield f"the page of two versions says {one}, log {said} {key}"


def alike(one: float | None, other: float | None) -> bool:
    """Whether numbers are the same, one of them with six digits; what is not told is not compared."""
    return one is None or other is None or abs(one - other) <= DIGITS * max(abs(one), abs(other))


EVERY = (lists, checks, pairs, changes, texts, pages)


def whole(asked: Asked) -> list[str]:
    """All that contradicts in the answers to one history."""
    told = log(asked)
    return [text for one in EVERY for text in one(asked, told)]


def words(told: Iterable[Said]) -> set[str]:
    """The words that are said."""
    return {one.verdict for one in told if one.verdict}


def names(asked: Asked) -> list[str]:
    """What is printed of a series can be given to the commands that choose series."""
    found = []
    answer = asked.json("trend")
    for series in answer["series"]:
        text = " ".join(filter(None, (series["cmd"], series["args"], series["workload"])))
        chosen = asked.json("trend", text)["series"]
        if series not in chosen:
            found.append(f"trend {text!r} does not find its own series")
    for version in asked.json("changes")["changes"]:
        for step in version["steps"]:
            text = " ".join(filter(None, (step["cmd"], step["args"], step["workload"])))
            for name in (text, step["location"], f"{text} {step['location']}"):
                own = asked.json("changes", "--series", name)["changes"]
                there = {(one["version"], other["location"]) for one in own for other in one["steps"]}
                if (version["version"], step["location"]) not in there:
                    found.append(f"changes --series {name!r} does not find its own change")
    short = re.compile(r"^[0-9a-f]{7}\b", re.MULTILINE)
    for version in set(short.findall(asked.perun("trend"))):
        asked.perun("status", version)
        asked.perun("check", "head", version)
        asked.perun("log", "-n", "1", version)
    for one in asked.json("status")["registered"]:
        for name in (one["tag"], one["id"]):
            asked.perun("show", name, "raw")
    return found
