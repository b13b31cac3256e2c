"""Write incomes.csv: eight invented people and their incomes, in thousands.

Needs nothing but Python. The names come in pairs that are nearly alike (Alice Marlow, Alicia
Marlowe) so that a misspelt query has more than one good answer.
"""

from _shared import run

INCOMES = {
    "Alice Marlow": 32,
    "Alicia Marlowe": 41,
    "Bruno Keller": 58,
    "Bruna Kellner": 66,
    "Carmen Ortiz": 75,
    "Dmitri Volkov": 27,
    "Elspeth Grant": 90,
    "Farid Haddad": 51,
}


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    rows = [f"{name},{income}\n" for name, income in INCOMES.items()]
    return {"incomes.csv": "".join(["name,income\n", *rows]).encode()}


if __name__ == "__main__":
    run(build, __doc__)
