"""Write nile.csv: the yearly flow of the Nile at Aswan, 1871 to 1970.

Needs the data file of statsmodels; its dependencies are not needed:

    python -m pip install --no-deps statsmodels==0.15.0
"""

from _shared import run, source


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    file = source(
        "statsmodels",
        "datasets/nile/nile.csv",
        sha256="88e97bea7249e5832a85e41aec6ce4b8f7b1b14aae930c8363da7f193286b598",
        install="--no-deps statsmodels==0.15.0",
    )
    _, *rows = file.read_text("utf-8").splitlines()
    return {"nile.csv": "\n".join(["year,flow", *rows, ""]).encode()}


if __name__ == "__main__":
    run(build, __doc__)
