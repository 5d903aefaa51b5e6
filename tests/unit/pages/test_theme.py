"""The colours of charts: legible on both pages, for all kinds of colour vision."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from perun.pages import DARK, LIGHT, SERIES, SUM, WHISKER, colour, dark_colours

VISIONS = {
    "normal": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Matrices of linear RGB, G. Machado et al., IEEE TVCG 15(6), 2009, table 1, severity 1.0."""


def linear(colour: str) -> np.ndarray:
    """The linear RGB of sRGB (IEC 61966-2-1)."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2."""
    low, high = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) + 0.05 for each in (one, other))
    return high / low


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB, by the white point D65."""
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = matrix @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(("theme", "number"), [(LIGHT, 0), (DARK, 1)])
def test_series_have_the_contrast_of_graphics(theme: dict[str, str], number: int) -> None:
    for pair in (*SERIES, SUM, WHISKER):
        assert contrast(pair[number], theme["background"]) >= 3


@pytest.mark.parametrize("role", ["text", "muted", "accent", "worse", "better"])
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_what_is_written_has_the_contrast_of_text(theme: dict[str, str], role: str) -> None:
    for ground in ("background", "surface"):
        assert contrast(theme[role], theme[ground]) >= 4.5


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("number", [0, 1])
def test_any_two_colours_differ(vision: str, number: int) -> None:
    seen = [lab(np.array(VISIONS[vision]) @ linear(pair[number])) for pair in SERIES]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 16


def test_each_colour_has_one_for_dark_pages() -> None:
    assert {colour(number) for number in range(-1, 20)} < set(dark_colours())
    assert colour(8) == colour(0)
