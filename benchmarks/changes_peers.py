"""The change points that other programs find in histories, and the CPU time that takes; in their environment.

    build/history-peers/bin/python benchmarks/changes_peers.py FIRST COUNT POINTS

Prints JSON: for each program the places of each history of these seeds, and its seconds in all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import ruptures
from otava.analysis import compute_change_points

from histories import history


def kernel(values: np.ndarray) -> list[int]:
    """ruptures' best of those tried: an exact search with the Gaussian kernel, 3 ln n for each level."""
    logs = np.log(values)
    search = ruptures.KernelCPD(kernel="rbf", min_size=4).fit(logs.reshape(-1, 1))
    return [int(place) for place in search.predict(pen=3 * np.log(len(logs)))[:-1]]


def otava(values: np.ndarray) -> list[int]:
    """Apache Otava as its command line calls it."""
    found, _ = compute_change_points(list(values), window_len=50, max_pvalue=0.001, min_magnitude=0.0)
    return [int(one.index) for one in found]


PROGRAMS: dict[str, Callable[[np.ndarray], list[int]]] = {
    "ruptures KernelCPD rbf": kernel, "Apache Otava": otava,
}  # fmt: skip


def main() -> None:
    """Search all histories by each program."""
    first, count, points = map(int, sys.argv[1:])
    made = [history(seed, points).values for seed in range(first, first + count)]
    answer = {}
    for name, search in PROGRAMS.items():
        search(made[0])
        start = time.process_time()
        places = [search(values) for values in made]
        answer[name] = {"seconds": time.process_time() - start, "places": places}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
