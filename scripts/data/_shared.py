"""What the builders of ``d2lmini/data`` share: find a source, check it, write or compare."""

import argparse
import hashlib
import importlib.util
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "d2lmini" / "data"


def folder(package: str, *, install: str) -> Path:
    """Find an installed package without importing it; if it is missing, end with one line."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{Path(sys.argv[0]).name} needs {package}: python -m pip install {install}")
    return Path(spec.submodule_search_locations[0])


def source(package: str, path: str, *, sha256: str, install: str) -> Path:
    """Find a file inside an installed package, without importing it, and check its hash.

    A package that is missing, or that holds another file, ends the script with one line.
    """
    file = folder(package, install=install) / path
    found = digest(file.read_bytes()) if file.is_file() else "no such file"
    if found != sha256:
        sys.exit(f"{package}/{path} should have sha256 {sha256}, found {found}; install {install}")
    return file


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def npz(**arrays: np.ndarray) -> bytes:
    """Return what ``np.savez`` would write, with no clock, no compressor and no platform in it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            file.writestr(entry, content.getvalue())
    return archive.getvalue()


def equal(_name: str, old: bytes, new: bytes) -> bool:
    """Tell whether a file is the same, byte for byte."""
    return old == new


def run(
    build: Callable[[], dict[str, bytes]],
    description: str | None,
    same: Callable[[str, bytes, bytes], bool] = equal,
) -> None:
    """Write what ``build`` returns into ``d2lmini/data``; with ``--check``, only compare."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a stored file differs"
    )
    check = parser.parse_args().check
    differing = []
    for name, content in build().items():
        file = DATA / name
        if not check:
            file.write_bytes(content)
        elif not file.is_file() or not same(name, file.read_bytes(), content):
            differing.append(name)
        print(f"{name}: {len(content)} bytes, sha256 {digest(content)}")
    if differing:
        sys.exit(f"not the same as in {DATA.name}/: {', '.join(differing)}")
