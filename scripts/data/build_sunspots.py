"""Write sunspots.csv: the yearly sunspot number, 1700 to 2008.

Needs the data file of statsmodels; its dependencies are not needed:

    python -m pip install --no-deps statsmodels==0.15.0
"""

from _shared import run, source


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    file = source(
        "statsmodels",
        "datasets/sunspots/sunspots.csv",
        sha256="f67889b1d9002cd5227f0e0ef54e35b419cdd85a31279adef6f73fb41e5c0a9b",
        install="--no-deps statsmodels==0.15.0",
    )
    _, *rows = file.read_text("utf-8").splitlines()
    return {"sunspots.csv": "\n".join(["year,count", *rows, ""]).encode()}


if __name__ == "__main__":
    run(build, __doc__)
