"""A campaign whose results lie in a folder, as a search leaves them."""

from pathlib import Path

import in_process as programs

from perun.fuzz import results
from perun.fuzz.after import understand
from perun.fuzz.results import (
    FAULT,
    FOLDERS,
    HANG,
    SLOW,
    Campaign,
    Confirmation,
    Point,
    Program,
    Result,
    Rule,
    Seed,
    TimeSeries,
)

SEED = b"int main(void) {\n    return 0;\n}\n"
SLOW_INPUT = b"int main(void) {\n" + b" " * 300 + b"return 0;\n}\n"


def folder_of(folder: Path, name: str = "main.c", text: str = "") -> Campaign:
    """Write the inputs of a campaign and its `results.json`.

    :param name: of the seed and in those of the results; :param text: in all that a user or a program names.
    """
    confirmed = Confirmation("Degradation", 1.0, "hodges_lehmann_ratio", "time", 12.5, 11.0, 14.25, 10)
    found = []
    for kind, data in ((SLOW, SLOW_INPUT), (HANG, b" " * 2000), (FAULT, b"\0\xff" * 20)):
        file = str(Path(FOLDERS[kind], f"{kind}-{name}"))
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
        result = Result(
            file, kind, name, name, ("T.10", f"R.1{text}"), len(data), 90_000, 24.5, 0.01, 3.0, 120,
            ending=text, confirmation=confirmed if kind == SLOW else None, hot=f"line {text}", hot_ratio=30.0,
        )  # fmt: skip
        found.append(result)
    (folder / "seeds").mkdir()
    (folder / "seeds" / name).write_bytes(SEED)
    campaign = Campaign(
        Program(f"./trim{text}", text, "/project", "0123456789abcdef", backend="gcov"),
        {"timeout": 60}, 7,
        (Seed(name, f"seeds/{name}", len(SEED), 3600, 0.001),), 3600, tuple(found),
        (Rule(f"T.10{text}", "insert_whitespace", f"Insert whitespace {text}", 40, 9, 2),),
        TimeSeries((Point(0.0, 1, 1.0), Point(1.5, 60, 8.0), Point(3.0, 120, 24.5))),
        TimeSeries((Point(0.0, 0, 0.0), Point(3.0, 120, 1.0))), 5000, 90, 12, 60.0, 2.0,
        "the time was over", "1.0"
    )  # fmt: skip
    results.save(folder, campaign)
    return campaign


def understood(folder: Path) -> Campaign:
    """The campaign of the folder after its results were minimised and modelled, with the trimming program."""
    campaign = understand(
        folder, results.load(folder), programs.trim, max_size=3000, hang_timeout=1, seconds=1e9
    )  # fmt: skip
    results.save(folder, campaign)
    return campaign
