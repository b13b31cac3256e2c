"""What was made or proved before, and kept until something that it depends on changes.

All of it lies in `.pytest_cache`: `make clean` and `--cache-clear` forget it, and a fresh clone has
none. A key is a hash of files, of the versions installed, and of what else is named.
"""

import functools
import hashlib
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# PyTorch and NumPy choose their kernels by these: `make stable` sets them.
KERNELS = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "OPENBLAS_CORETYPE", "OMP_NUM_THREADS")


@functools.cache
def _file(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def files(*names: str, besides: str = r"(?!)") -> list[Path]:
    """Return all files of these folders and files, but for those that a pattern names."""
    found = []
    for place in map(ROOT.joinpath, names):
        found += sorted(place.rglob("*")) if place.is_dir() else [place]
    return [
        path
        for path in found
        if path.is_file() and "__pycache__" not in path.parts and not re.search(besides, str(path))
    ]


@functools.cache
def versions() -> str:
    """Return what is installed, and on what kind of machine."""
    installed = sorted(p.name for p in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    return " ".join([sys.version, platform.platform(), platform.processor(), *installed])


def key(paths: list[Path], *more: object) -> str:
    """Return a hash of files, of all versions, and of what else a result depends on."""
    digest = hashlib.sha256(repr((versions(), more)).encode())
    for path in paths:
        digest.update(str(path).encode() + _file(path))
    return digest.hexdigest()[:24]


def folder(config, name: str) -> Path | None:
    """Return a folder that outlives the run; None in a checkout that may not be written to."""
    if not os.access(ROOT, os.W_OK) or getattr(config, "cache", None) is None:
        return None
    return config.cache.mkdir(name)
