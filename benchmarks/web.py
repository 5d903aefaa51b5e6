"""The dashboard of 10,000 commits and 100 series: how soon it answers, what it takes, and its site beside
that of `asv publish` of the same data.

asv (airspeed velocity) runs in an environment of its own: `build/history-peers`.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright

import web_history
from harness import Contestant, once
from report import Count, Measured, Place, Row

COMMITS: Final = 10_000
SERIES: Final = 100
SECOND, MINUTE = 1.0, 60.0
ASV: Final = Path("build/history-peers/bin/asv").absolute()
WHAT: Final = f"dashboard of {COMMITS:,} commits x {SERIES} series"
FIRST_PAGE: Final = ("site", "overview", "history")
ROUNDS: Final = 5
FEWER: Final = 1_000
"""Commits of a history that asv ends with, too."""
PATIENCE: Final = 30 * MINUTE
"""After which asv is ended."""
FRAMES: Final = 30
"""A second, that a page which is moved shall draw at least."""
MOVED: Final = 5
"""Seconds that it is moved."""
CHROMIUM: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync")  # fmt: skip


def web(place: Place) -> Iterator[Row | Count]:
    """Serving and building it, and what asv takes for its site."""
    folder = place.folder / "web"
    made = web_history.make(folder, COMMITS, SERIES)
    commits = list(made.commits)
    environ = os.environ | {"PERUN_TRUST": "1"}
    start = time.perf_counter()
    search = [place.perun, "changes", "--json"]
    subprocess.run(search, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
    searching = time.perf_counter() - start
    what = f"{WHAT}: the first search of all series"
    yield Row(what, searching, 5 * MINUTE, "5 minutes", None, is_rival=False)
    served = [_serve(place.perun, folder) for _ in range(ROUNDS)]
    what = f"{WHAT}: from a cold start until overview and a series are answered"
    yield from _within_a_second(what, [one[0] for one in served], [one[1] for one in served])
    memory = round(max(one[2] for one in served))
    yield Count(f"{WHAT}: largest memory of the server, MB", memory, 300, most=300)
    yield from _frames(place.perun, folder)
    site = place.folder / "web-site"
    build = Contestant([place.perun, "web", "build", str(site)], folder)
    seconds = once(build).wall
    what = f"{WHAT}: the static site"
    yield Row(f"{what}, within a minute", seconds, MINUTE, "a minute", 1.0, is_rival=False)
    yield Count(f"{what}, size in MB", round(_size(site) / 1e6), 50, most=50)
    yield Count(f"{what}, first page compressed, kB", round(_first_page(site) / 1e3), 500, most=500)
    more = []
    for number in range(ROUNDS):
        _one_more(folder, made, COMMITS + number)
        more.append(once(build))
    what = f"{what}, after one more commit"
    yield from _within_a_second(what, [one.wall for one in more], [one.cpu for one in more])
    yield from _smaller(place)
    # asv searches all series each time that it publishes.
    yield from _beside_asv(place, folder, made._replace(commits=commits), searching + seconds, site)


def _within_a_second(what: str, wall: Sequence[float], cpu: Sequence[float]) -> Iterator[Row]:
    """Wall and CPU time of the rounds: the first says little of a machine that has much else to do."""
    for kind, samples in (("wall", wall), ("CPU", cpu)):
        yield Row(f"{what}, {kind}", Measured(samples), SECOND, "a second", 1.0, is_rival=False)


def _smaller(place: Place) -> Iterator[Row | Count]:
    """A history that is short enough for asv to end."""
    folder, site = place.folder / "web-small", place.folder / "web-small-site"
    made = web_history.make(folder, FEWER, SERIES)
    # The first build also searches all series, as asv does each time.
    seconds = once(Contestant([place.perun, "web", "build", str(site)], folder)).wall
    yield from _beside_asv(place, folder, made, seconds, site)


def _beside_asv(
    place: Place, folder: Path, made: web_history.Made, seconds: float, site: Path
) -> Iterator[Row | Count]:
    """A site that took so long beside that of `asv publish`, which is ended after a while."""
    what = f"dashboard of {len(made.commits):,} commits x {SERIES} series: the static site"
    publishing, published = _asv(folder, place.folder / f"asv-{len(made.commits)}", made)
    if published is None:
        peer = f"asv publish, which had not ended after {publishing / MINUTE:.0f} minutes"
        yield Row(f"{what}, with the first search", seconds, publishing, peer, 1.0)
        return
    yield Row(f"{what}, with the first search", seconds, publishing, "asv publish", 1.0)
    yield Row(f"{what}, size", _size(site) / 1e6, _size(published) / 1e6, "asv publish", None, "MB")


def _serve(perun: str, folder: Path) -> tuple[float, float, float]:
    """Seconds until a cold server has answered what two pages need, CPU seconds until it has ended, and its
    largest memory in MB."""
    before = os.times()
    start = time.perf_counter()
    with _served(perun, folder) as (process, port):
        _get(port, "/")
        for name in FIRST_PAGE:
            _get(port, f"/api/{name}")
        series = _get(port, "/api/series")["series"][0]["id"]
        page = _get(port, f"/api/series/{series}")
        for chunk in page["chunks"]:
            _get(port, f"/api/series/{series}/{chunk}")
        seconds = time.perf_counter() - start
        status = Path(f"/proc/{process.pid}/status").read_text()
        memory = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu, memory


@contextmanager
def _served(perun: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of the folder, with its port."""
    process = subprocess.Popen(
        [perun, "web", "serve", "--no-open"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=os.environ | {"PERUN_TRUST": "1"},
    )  # fmt: skip
    try:
        assert process.stdout
        yield process, int(process.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def _frames(perun: str, folder: Path) -> Iterator[Row | Count]:
    """How many frames a second are drawn while the page of a series, and the grid, are moved."""
    with _served(perun, folder) as (_, port), sync_playwright() as driver:
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=list(CHROMIUM))
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        series = _get(port, "/api/series")["series"][0]["id"]
        for what, address, canvas in (
            ("a series, panned and zoomed", f"series.html?id={series}", "canvas.main[data-drawn]"),
            ("the grid, moved over", "grid.html", ".heat canvas[data-drawn]"),
        ):
            page.goto(f"http://127.0.0.1:{port}/{address}", wait_until="networkidle")
            page.locator(canvas).wait_for()
            drawn, slow = _moved(page)
            load = os.getloadavg()[0]
            print(f"{what}: {drawn} frames a second, 95 % of them within {slow} ms, load {load:.1f}")
            yield Count(f"{WHAT}: frames a second of {what}, in chromium", drawn, 60, least=FRAMES)
        browser.close()


def _moved(page: Page) -> tuple[int, int]:
    """Frames a second, and the milliseconds that 95 % of them take at most."""
    found = page.evaluate(Path(__file__).with_name("web_frames.js").read_text("utf-8"), MOVED)
    return round(found["frames"] / found["seconds"]), round(found["slow"])


def _get(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200, (path, answer.status)
    if answer.getheader("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return json.loads(body) if path.startswith("/api/") else body


def _one_more(folder: Path, made: web_history.Made, number: int) -> None:
    """One more measured commit."""
    stream = web_history.commit("main", number, web_history.START + web_history.APART * number)
    stream = stream.rstrip("\n") + f"\nfrom {made.commits[-1]}\n\n"
    importing = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(importing, cwd=folder, input=stream.encode(), check=True)
    asking = ["git", "rev-parse", "main"]
    found = subprocess.run(asking, cwd=folder, check=True, capture_output=True, text=True)
    made.commits.append(found.stdout.strip())
    last = [one._replace(values=one.values[-1:]) for one in made.histories]
    web_history.register(folder, last, [(made.commits[-1], 0)], number)


def _size(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def _first_page(site: Path) -> int:
    """Bytes of all that the overview loads, packed as web servers send it."""
    files = [site / "index.html", *(site / "assets").iterdir()]
    files += [site / "data" / f"{name}.js" for name in FIRST_PAGE]
    return sum(len(gzip.compress(one.read_bytes(), 6)) for one in files)


def _asv(folder: Path, root: Path, made: web_history.Made) -> tuple[float, Path | None]:
    """Seconds that `asv publish` takes for the same values, and its site; None where it does not end."""
    results = root / "results" / "machine"
    results.mkdir(parents=True)
    (root / "benchmarks").mkdir()
    configuration = {
        "version": 1, "project": "app", "repo": str(folder), "branches": ["main"], "html_dir": "html",
        "environment_type": "virtualenv", "benchmark_dir": "benchmarks", "results_dir": "results",
        "pythons": ["3.11"],
    }  # fmt: skip
    (root / "asv.conf.json").write_text(json.dumps(configuration))
    machine = {"arch": "x86_64", "cpu": "", "machine": "machine", "num_cpu": "8", "os": "", "ram": ""}
    (results / "machine.json").write_text(json.dumps({**machine, "version": 1}))
    names = [f"app.time_{row}_{kind}" for row in range(len(made.histories)) for kind in ("real", "user")]
    described = {
        name: {"code": "", "name": name, "param_names": [], "params": [], "timeout": 60, "type": "time",
               "unit": "seconds", "version": "1", "min_run_count": 2, "number": 0, "repeat": 0, "rounds": 2,
               "sample_time": 0.01, "warmup_time": -1}
        for name in names
    }  # fmt: skip
    (root / "results" / "benchmarks.json").write_text(json.dumps({**described, "version": 2}))
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
               "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]  # fmt: skip
    for place, checksum in enumerate(made.commits):
        values = [float(one.values[place] * share) for one in made.histories for share in (1.0, 0.9)]
        found = {
            "commit_hash": checksum, "env_name": "virtualenv-py3.11", "date": 1000 * web_history.START,
            "version": 2, "params": {**machine, "python": "3.11"},
            "python": "3.11", "requirements": {}, "env_vars": {}, "result_columns": columns, "durations": {},
            "results": {
                name: [[value], [], "1", 1000, 1.0, [value * 0.99], [value * 1.01], [value * 0.995],
                       [value * 1.005], [1], [5]]
                for name, value in zip(names, values, strict=True)
            },
        }  # fmt: skip
        (results / f"{checksum[:8]}-virtualenv-py3.11.json").write_text(json.dumps(found))
    shutil.rmtree(root / "html", ignore_errors=True)
    start = time.perf_counter()
    command = [ASV, "publish", "--no-pull"]
    publishing = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        code = publishing.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return time.perf_counter() - start, None
    finally:
        if publishing.poll() is None:
            os.killpg(publishing.pid, signal.SIGKILL)
            publishing.wait()
    if code:
        raise SystemExit(f"asv publish ended with {code}")
    return time.perf_counter() - start, root / "html"
