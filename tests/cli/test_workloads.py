"""Workloads that generators make, in jobs and in the job matrix (manual 7.4)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORDER = """\
#!/bin/sh
{ printf '%s' "$#"; for one in "$@"; do printf ' %s' "$one"; done; wc -l; } >>"$RECORD"
"""
QUICK = "{name: time, params: {warmup: 0, repeat: 2}}"


@pytest.fixture
def record(project: Any, record: Path) -> Path:
    """What the program `./prog` has noted: its arguments, and how many lines it read."""
    project.write({"prog": RECORDER})
    (project.path / "prog").chmod(0o755)
    project.commit("Add a program")
    return record


@pytest.fixture
def configure(project: Any, record: Path) -> Callable[[str], None]:
    """Write a local configuration that measures `./prog` with the workloads `w`, of these generators."""

    def write(generators: str, workloads: str = "[w]", more: str = "") -> None:
        (project.path / ".perun/local.yml").write_text(
            f"vcs:\n  type: git\n  url: ..\ncmds: [./prog]\ncollectors: [{QUICK}]\n"
            f"workloads: {workloads}\n{more}generators:\n  workload:\n{generators}"
        )

    return write


def profiles(project: Any) -> list[dict[str, Any]]:
    """The pending profiles, by their workloads."""
    found = [json.loads(path.read_bytes()) for path in (project.path / ".perun/jobs").glob("*.perf")]
    return sorted(found, key=lambda profile: profile["header"]["workload"])


INTEGERS = "    - {id: w, type: integer, min_range: 10, max_range: 30, step: 10%s}\n"


def test_merged(perun: Any, project: Any, record: Path, configure: Any) -> None:
    configure(INTEGERS % "")
    perun("run", "matrix", out="[w]")
    assert record.read_text().split() == [part for n in (10, 10, 20, 20, 30, 30) for part in ("1", f"{n}0")]
    (profile,) = profiles(project)
    assert profile["header"]["workload"] == "w"
    columns = list(profile["resources"].values())
    assert [column["workload"] for column in columns] == [[10, 10, 20, 20, 30, 30]] * 3
    assert profile["workload_generator"].items() >= {"generator": "w", "type": "integer", "seed": 0}.items()


def test_merged_can_be_regressed_on_the_workload(perun: Any, project: Any, configure: Any) -> None:
    more = (
        "postprocessors:\n  - {name: regression_analysis, params: {method: full, depending_on: workload}}\n"
    )
    configure(INTEGERS % "", more=more)
    perun("run", "matrix")
    (profile,) = profiles(project)
    linear = next(model for model in profile["models"] if model["model"] == "linear")
    assert (linear["x_start"], linear["x_end"], linear["per_key"]) == (10, 30, "workload")


def test_found_as_the_independent_variable(perun: Any, project: Any, configure: Any) -> None:
    configure(INTEGERS % "")
    perun("run", "matrix")
    perun("postprocessby", "0@p", "regression-analysis", "-m", "full")
    assert any(model.get("per_key") == "workload" for one in profiles(project) for model in one["models"])


@pytest.mark.parametrize("spelling", ["true", "1", "yes", '"True"'])
def test_a_profile_for_each(spelling: str, perun: Any, project: Any, configure: Any) -> None:
    configure(INTEGERS % f", profile_for_each_workload: {spelling}")
    assert perun("run", "matrix").out.count("stored ") == 3
    made = profiles(project)
    assert [profile["header"]["workload"] for profile in made] == ["10", "20", "30"]
    for profile in made:
        assert all("workload" not in columns for columns in profile["resources"].values())


def test_files(perun: Any, project: Any, record: Path, configure: Any) -> None:
    each = (
        "    - {id: w, type: textfile, min_lines: 2, max_lines: 7, step: 5, profile_for_each_workload: 1}\n"
    )
    configure(each, workloads="[w, '< w']")
    perun("run", "matrix")
    made = profiles(project)
    names = [profile["header"]["workload"] for profile in made]
    assert names == ["< w/lines_2.txt", "< w/lines_7.txt", "w/lines_2.txt", "w/lines_7.txt"]
    (folder,) = (project.path / ".perun/tmp/workloads").iterdir()
    assert folder.name.startswith("w-")
    lines = record.read_text().splitlines()
    assert lines == [
        *[f"1 {folder}/lines_2.txt0"] * 2,
        *[f"1 {folder}/lines_7.txt0"] * 2,
        *["02"] * 2,
        *["07"] * 2,
    ]
    (folder / "lines_2.txt").write_text("spoiled")
    (folder / "extra").touch()
    perun("run", "matrix")
    assert record.read_text().splitlines()[8:] == lines
    assert [path.name for path in (project.path / ".perun/tmp").iterdir()] == ["workloads"]


def test_strings_follow_the_seed(perun: Any, record: Path, configure: Any) -> None:
    configure("    - {id: w, type: string, min_len: 9, max_len: 9}\n")

    def made(*options: str, verb: str = "matrix") -> str:
        record.unlink(missing_ok=True)
        perun("run", verb, *options)
        words = record.read_text().split()
        assert words == words[:2] * 2
        return str(words[1])

    assert made() == made() == made("--seed", "0")
    assert made("--seed", "5") not in ("", made())
    job = ("-b", "./prog", "-w", "w", "-c", "time", "-cp", "time", "warmup=0", "-cp", "time", "repeat=2")
    assert made("--seed", "5", *job, verb="job") == made("--seed", "5")
    configure("    - {id: w, type: string, min_len: 9, max_len: 9, seed: 5}\n")
    assert made() == made("--seed", "5")
    assert made("--seed", "0") != made()


def test_a_program_that_writes_workloads(perun: Any, project: Any, configure: Any) -> None:
    project.write({"make": '#!/bin/sh\nfor n in 30 4; do head -c $n /dev/zero >"$1/n$n"; done\n'})
    (project.path / "make").chmod(0o755)
    configure("    - {id: w, type: external, cmd: './make {folder}'}\n")
    perun("run", "--force-dirty", "matrix")
    (profile,) = profiles(project)
    assert next(iter(profile["resources"].values()))["workload"] == [4, 4, 30, 30]


def test_lines_of_a_program_that_are_no_numbers(perun: Any, project: Any, configure: Any) -> None:
    configure("    - {id: w, type: external, cmd: 'printf \"--fast\\n--slow 3\\n\"'}\n")
    perun("run", "matrix")
    (profile,) = profiles(project)
    found = {constants["workload"] for constants in profile["resource_type_map"].values()}
    assert found == {"--fast", "--slow 3"}


@pytest.mark.parametrize(
    ("name", "count", "first", "last"),
    [("basic_strings", 16, 8, 128), ("basic_integers", 50, 100, 9900), ("basic_files", 10, 10, 9010)],
)
def test_generators_of_the_shared_configuration(
    name, count, first, last, perun, project, record, share
) -> None:
    share("general: {editor: vi}\n")
    perun("collect", "-c", "./prog", "-w", name, "time", "-w", "0", "-r", "1")
    (profile,) = profiles(project)
    sizes = next(iter(profile["resources"].values()))["workload"]
    assert (len(sizes), sizes[0], sizes[-1]) == (count, first, last)


def test_the_nearest_generator_of_a_name(perun: Any, record: Path, configure: Any) -> None:
    configure("    - {id: basic_integers, type: integer, min_range: 7, max_range: 7}\n", "[basic_integers]")
    perun("run", "matrix")
    assert record.read_text().split() == ["1", "70"] * 2


@pytest.mark.parametrize(("generator", "line", "message"), [
    ("type: integer\n      min_range: 9\n      max_range: 3", 11, "min_range (9) is larger than max_range"),
    ("type: integer\n      max_range: 3\n      step: 0", 12, "step must be at least 1, not 0"),
    ("type: string\n      step_len: 0", 11, "step_len must be at least 1, not 0"),
    ("type: integer\n      min_range: 5\n      max_rage: 9", 12, "unknown parameter 'max_rage'"),
    ("type: intger", 9, "there is no workload generator 'intger'"),
    ("type: integer\n      seed: x", 11, "seed must be a whole number"),
    ("type: integer\n      max_range: 1000000000000", 9, "more than 10000 workloads"),
    ("type: external\n      cmd: 'false'", 9, "'false' ended with status 1"),
    ('type: external\n      cmd: \'echo "\\""\'', 9, "cannot be split"),
])  # fmt: skip
def test_wrong_generators(generator, line, message, perun, project, record, configure) -> None:
    configure(f"    - id: w\n      {generator}\n")
    outcome = perun("run", "matrix", check=False)
    assert outcome.code in (2, 5, 8, 9)
    place = f"{project.path / '.perun/local.yml'}:{line}: workload generator 'w': "
    assert place in outcome.err
    assert message in outcome.err
    assert not record.exists()
    assert not profiles(project)


@pytest.mark.parametrize(("matrix", "line", "message"), [
    ("collectors:\n  - time\n  - name: tiem\n", 7, "there is no collector 'tiem'"),
    ("collectors:\n  - name: time\n    params:\n      repeat: 0\n", 8, "repeat must be at least 1"),
    ("collectors:\n  - name: time\n    params:\n      - warmup: 1\n      - repat: 0\n", 9, "'repat'"),
    ("collectors:\n  - name: regex\n    params:\n      pattern: abc\n", 8,
     "'abc' needs the group (?P<value>"),
    ("collectors: [time]\npostprocessors:\n  - name: none\n", 7, "there is no postprocessor 'none'"),
])  # fmt: skip
def test_wrong_units(matrix: str, line: int, message: str, perun: Any, project: Any, record: Path) -> None:
    local = project.path / ".perun/local.yml"
    local.write_text(f"vcs:\n  type: git\n  url: ..\ncmds: [./prog]\n{matrix}")
    outcome = perun("run", "matrix", check=False, err=f"{local}:{line}: ")
    assert message in outcome.err
    assert not record.exists()


def test_a_failing_workload_fails_its_job(perun: Any, project: Any, configure: Any) -> None:
    project.commit("Fail", {"prog": "#!/bin/sh\ntest $1 -lt 20\n"})
    configure(INTEGERS % "")
    perun("run", "matrix", code=8, err="./prog 20")
    assert not profiles(project)


def test_all_versions_get_the_same(perun: Any, project: Any, record: Path, configure: Any) -> None:
    project.commit("Another", {"other": ""})
    configure("    - {id: w, type: textfile, min_lines: 3, max_lines: 3}\n")
    perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix", "--rounds", "1")
    assert len(profiles(project)) == 2
    assert len(set(record.read_text().split())) == 2
    assert perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix", "--missing").lines == [
        "nothing to run: no profile is missing"
    ]
