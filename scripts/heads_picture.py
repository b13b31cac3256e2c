"""Draw chapters/_static/heads.png, the picture of the library in the README.

python -m scripts.heads_picture
"""

from pathlib import Path

from d2lmini.models import load_readings
from d2lmini.plotting import Shown, show_heatmaps

PICTURE = Path(__file__).resolve().parents[1] / "chapters" / "_static" / "heads.png"
TEXT = "Alice Marlow likes tea. Bruno Keller likes milk. Alice Mar"
LAYERS, HEADS = range(16, 20), range(4, 9)


def drawn() -> Shown:
    """Return some heads of chapter 7's model, as they read one of its texts."""
    reading = load_readings()[TEXT]
    return show_heatmaps(
        reading.weights[LAYERS.start : LAYERS.stop, HEADS.start : HEADS.stop],
        reading.pieces,
        titles=[f"head {head}" for head in HEADS],
        row_titles=[f"layer {layer}" for layer in LAYERS],
        mask="causal",
    )


if __name__ == "__main__":
    PICTURE.write_bytes(drawn().png())
