"""The colour map of weights, and others turned for a dark page: hues stay, lightness does not."""

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from matplotlib.colors import Colormap, ListedColormap, to_rgb

from d2lmini.plotting.theme import PALETTES, RAMP, luminance

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

BRIGHTEST, STRONGEST = 0.80, 0.19  # lightness and chroma at the strong end
LIFT = 0.07  # how far the weak end lies above the page

# OKLab (Ottosson, 2020), from linear sRGB.
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_AXES = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def to_oklab(rgb: Any) -> Array:
    """Return lightness, green-red and blue-yellow of sRGB colours, (..., 3)."""
    rgb = np.asarray(rgb, dtype=float)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lab: Array = np.cbrt(linear @ _CONES.T) @ _AXES.T
    return lab


def from_oklab(lab: Any) -> Array:
    """Return sRGB colours, beyond 0 to 1 where a screen cannot show them."""
    linear = (np.asarray(lab) @ np.linalg.inv(_AXES).T) ** 3 @ np.linalg.inv(_CONES).T
    rgb: Array = np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * np.abs(linear) ** (1 / 2.4) - 0.055
    )
    return rgb


@lru_cache(maxsize=2)
def weight_map(theme: str) -> Colormap:
    """Return the colours of weights from 0 to 1."""
    stops = to_oklab([to_rgb(stop) for stop in RAMP[theme]]).T
    lab = [np.interp(np.linspace(0, 1, 256), (0, 0.5, 1), axis) for axis in stops]
    return ListedColormap(from_oklab(np.transpose(lab)).clip(0, 1), name="weights")


def dark_map(cmap: Colormap) -> Colormap:
    """Return the map for a dark page; one that is dark at its weak end already stays as it is.

    At the weak end a cell is just lighter than the page; from there lightness rises evenly, at the
    hue that the map has near its strong end.
    """
    if cmap == weight_map("light"):
        return weight_map("dark")
    page = PALETTES["dark"]["page"]
    weak, middle, strong = (luminance(cmap(share)) for share in (0.0, 0.5, 1.0))
    if middle > max(weak, strong):  # two hues, pale between them
        low = _rise(cmap(0.15)[:3], page, 128)[::-1]
        return ListedColormap(np.concatenate([low, _rise(cmap(0.85)[:3], page, 128)]))
    if weak > strong:
        return ListedColormap(_rise(cmap(0.85)[:3], page, 256))
    return cmap


@lru_cache(maxsize=32)
def _rise(tone: tuple[float, ...], page: str, steps: int) -> Array:
    ground = to_oklab((1 - LIFT) * np.asarray(to_rgb(page)) + LIFT)[0]
    hue = to_oklab(tone)[1:]
    strength = float(np.hypot(*hue))
    hue = hue / strength if strength > 0.02 else 0 * hue  # grey stays grey
    colors = []
    for share in np.linspace(0, 1, steps):
        lightness = ground + (BRIGHTEST - ground) * share
        chroma = STRONGEST * min(1.0, 1.7 * share)
        rgb = from_oklab([lightness, *(hue * chroma)])
        while not (rgb.min() >= -1e-6 and rgb.max() <= 1 + 1e-6) and chroma > 1e-4:
            chroma *= 0.97  # the strongest colour that a screen can show
            rgb = from_oklab([lightness, *(hue * chroma)])
        colors.append(rgb.clip(0, 1))
    return np.array(colors)
