"""Sizes that tell no calls apart: of these no model can be made."""

from __future__ import annotations

from typing import Final

import numpy as np

from perun.collect._calls.events import Calls


class ConstantSizes:
    """Finds the functions whose size is the same in all of many calls.

    :param functions: how many functions there are.
    """

    MANY: Final = 10

    def __init__(self, functions: int) -> None:
        self._first = [-1] * functions
        self._calls = [0] * functions
        self._varies = [False] * functions

    def add(self, calls: Calls) -> None:
        """Take note of the sizes of some calls."""
        sized = calls.size >= 0
        for number in np.unique(calls.function[sized]).tolist():
            if not self._varies[number]:
                sizes = calls.size[sized & (calls.function == number)]
                if self._first[number] < 0:
                    self._first[number] = int(sizes[0])
                self._varies[number] = bool((sizes != self._first[number]).any())
                self._calls[number] += len(sizes)

    def found(self) -> dict[int, int]:
        """The numbers of these functions, and their sizes."""
        return {
            number: self._first[number]
            for number, count in enumerate(self._calls)
            if count >= self.MANY and not self._varies[number]
        }
