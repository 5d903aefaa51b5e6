"""`perun import` and `perun export`: from the file of another tool to a verdict, and out again."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
NAMES = ("name", "collector", "cmd", "args", "workload")


def bencher(value):
    """A file with one mean."""
    Path("means.json").write_text(json.dumps({"sum": {"latency": {"value": value, "lower_value": 1}}}))
    return "means.json"


def hyperfine(*times):
    """A file with the times of one command."""
    Path("times.json").write_text(
        json.dumps({"results": [{"command": "./x", "mean": 1, "times": times, "exit_codes": [0]}]})
    )
    return "times.json"


def verdicts(perun, *words):
    """Location and verdict of all changes."""
    told = perun("check", "head", "--json", *words).json
    return [(one["location"], one["verdict"]) for pair in told["comparisons"] for one in pair["changes"]]


def test_the_format_is_guessed_and_told(perun, project):
    done = perun("import", str(CORPUS / "import-pprof" / "go-cpu.pb.gz"), "--as", "./server")
    assert "is taken for pprof" in done.err
    assert done.out.startswith("registered pprof.cpu-server") and project.head[:10] in done.out
    (found,) = perun("status", "--json").json["registered"]
    assert (found["collector"], found["cmd"]) == ("pprof.cpu", "./server")
    lines = perun("show", "0@i", "flamegraph", "--format", "folded").lines
    assert any("x.fib" in line for line in lines)


def test_several_files_or_none(perun, project):
    good = str(CORPUS / "import-go" / "bench.txt")
    Path("bad.json").write_text('{"results": [{"command": "x", "times": ["fast"], "exit_codes": []}]}')
    done = perun("import", good, "bad.json", code=6)
    assert "bad.json" in done.err and "hyperfine" in done.err
    assert perun("status", "--json").json["registered"] == []


def test_what_is_wrong_is_said(perun, project):
    Path("text.txt").write_text("nothing that anybody knows\n")
    assert "the format of text.txt is not known" in perun("import", "text.txt", code=2).err
    assert "text.txt: it is no JSON" in perun("import", "pyperf", "text.txt", code=6).err
    assert "there is no file gone.json" in perun("import", "gone.json", code=2).err
    assert "name the file" in perun("import", "pprof", code=2).err
    assert "--history imports" in perun("import", ".", code=2).err
    assert "exclude each other" in perun("import", "--history", "-m", "HEAD", "text.txt", code=2).err
    Path("cut.gz").write_bytes(gzip.compress(b"x" * 9999)[:20])
    assert "cut.gz" in perun("import", "pprof", "cut.gz", code=6).err


def test_standard_input_and_the_forms_of_the_older_release(perun, project):
    text = (CORPUS / "import-perf" / "script.txt").read_text()
    for words in (("perf", "-"), ("perf", "script", "-"), ("-",)):
        told = perun("import", *words, "--cmd", "./prog", "-w", "5", "--json", input=text).json
        (one,) = told["profiles"]
        assert [one[key] for key in NAMES[1:]] == ["perf.cpu_clock", "./prog", "", "5"]
    folded = str(CORPUS / "import-folded" / "plain.folded")
    assert perun("import", "perf", "stack", folded, "--json").json["profiles"][0]["format"] == "folded"
    search = str(CORPUS / "import-elk" / "search.json")
    told = perun("import", "elk", "json", "--minor-version", "HEAD", search, "--json").json
    assert told["profiles"][0]["args"] == "boot"


def test_samples_get_verdicts(perun, project):
    steady = [1 + one % 5 / 1000 for one in range(20)]
    for slower in (1, 1.001, 0.999, 1, 1.002, 0.998, 1, 1.5):
        project.commit()
        perun("import", hyperfine(*(one * slower for one in steady)))
    assert verdicts(perun) == [("./x", "SevereDegradation")]
    assert len(perun("trend").lines) > 8


def test_means_get_none_before_the_history_shows_the_noise(perun, project):
    project.commit()
    assert "without samples" in perun("import", bencher(100)).err
    project.commit()
    perun("import", bencher(250))
    assert verdicts(perun) == [("sum", "Unknown")]
    for value in (100, 101, 100.5, 99.5, 100, 101, 99, 100, 250):
        project.commit()
        perun("import", bencher(value))
    assert verdicts(perun) == [("sum", "SevereDegradation")]


def test_a_history_is_imported_commit_by_commit(perun, project):
    first, second = project.head, project.commit()
    folder = Path("results/machine")
    folder.mkdir(parents=True)
    template = json.loads((CORPUS / "import-asv" / "v2.json").read_text())
    for version in (first, second, "f" * 40):
        (folder / f"{version[:8]}-env.json").write_text(json.dumps({**template, "commit_hash": version}))
    (folder / "machine.json").write_text('{"arch": "x86_64"}')
    done = perun("import", "--history", "results", "--json").json
    assert {one["minor_version"] for one in done["profiles"]} == {first, second}
    assert len(done["profiles"]) == 10
    assert any("1 file passed over" in one for one in done["notes"])
    assert any("ffffffffff" in one for one in done["notes"])
    named = Path(f"{first[:7]}.json")
    named.write_text(Path(hyperfine(1, 2)).read_text())
    assert perun("import", "--history", str(named), "--json").json["profiles"][0]["minor_version"] == first


def test_a_result_of_another_commit_is_told(perun, project):
    path = str(CORPUS / "import-pytest-benchmark" / "data.json")
    assert "was measured of 0123456789" in perun("import", path).err


def test_export(perun, project):
    perun("import", str(CORPUS / "import-folded" / "plain.folded"))
    assert perun("export", "folded", "0@i").out == "main 1\nmain;work 2.5\nmain;work;inner 3\n"
    assert perun("export", "folded", "0@i", "-o", "out.folded").out == "out.folded\n"
    assert Path("out.folded").read_text() == "main 1\nmain;work 2.5\nmain;work;inner 3\n"
    perun("export", "pprof", "0@i", "-o", "out.pb.gz")
    assert gzip.decompress(Path("out.pb.gz").read_bytes())
    assert "no samples of benchmarks" in perun("export", "benchstat", "0@i", code=6).err
    assert "there is no exporter" in perun("export", "none", "0@i", code=9).err
    Path("taken").mkdir()
    assert "cannot write" in perun("export", "folded", "0@i", "-o", "taken", code=2).err


def test_help_lists_the_formats(perun, project):
    assert "pytest-benchmark" in perun("import", "--help").out
    assert "openmetrics" in perun("export", "--help").out


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_a_named_pipe_is_read_once(perun, project):
    os.mkfifo("pipe")
    with subprocess.Popen(["cp", str(CORPUS / "import-go" / "bench.txt"), "pipe"]):
        assert len(perun("import", "pipe", "--json").json["profiles"]) == 5


def test_annotations_are_at_the_functions_that_got_slower(perun, project):
    Path("src").mkdir()
    Path("src/prog.c").touch()  # the recording names it as it was on another machine
    text = (CORPUS / "import-callgrind" / "small.out").read_text().replace("fl=(1) ", "fl=(1) /b/src/")
    for version, cost in (("HEAD~1", 100), ("HEAD", 300)):
        Path("out").write_text(text.replace("100", str(cost)).replace("160", str(cost + 60)))
        perun("import", "callgrind", "out", "-m", version)
    (run,) = perun("check", "head", "--format", "sarif").json["runs"]
    places = {}
    for one in run["results"]:
        (found,) = one["locations"]
        place = found["physicalLocation"]
        line = place["region"]["startLine"]
        places[found["logicalLocations"][0]["name"]] = f"{place['artifactLocation']['uri']}:{line}"
    assert places["prog.c:work"] == "src/prog.c:3"
    assert places["prog.c:main:inclusive"] == "src/prog.c:7"
