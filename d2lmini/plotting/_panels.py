"""What models return, as rows and columns of panels: layers, heads, and one item of a batch."""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from d2lmini._checks import position
from d2lmini.plotting._inputs import Bools, Floats, read_matrices, to_numpy

Mean: TypeAlias = Literal["heads", "layers", "both"]


class Panels(NamedTuple):
    """The numbers of a grid of panels, and what its rows and columns are, where that is known."""

    values: Floats  # (rows, columns, queries, keys)
    visible: Bools
    titles: list[str] | None
    row_titles: list[str] | None


def read_panels(
    matrices: Any, item: int | None = None, mean: Mean | None = None, name: str = "matrices"
) -> Panels:
    """Return the panels of a record, of a tuple of layers, or of an array."""
    if mean not in (None, "heads", "layers", "both"):
        raise ValueError(f"mean must be 'heads', 'layers' or 'both'; got {mean!r}")
    if isinstance(matrices, list | tuple) and all(part is None for part in matrices):
        raise ValueError(
            f"{name} is {'a' if matrices else 'an empty'} {type(matrices).__name__}"
            f"{' of None' if matrices else ''}: most likely a fused kernel returned no "
            "weights. Record them: with record_attention(model) as record: model(...), and show "
            "the record"
        )
    known = item is not None or mean is not None
    if callable(getattr(matrices, "stack", None)) and hasattr(matrices, "unseen"):
        known, matrices = True, _layers(matrices, item, name)
    else:
        matrices = to_numpy(matrices, name)
        if matrices.ndim == 5:  # (layers, batch, heads, queries, keys)
            at = _item(item, matrices.shape[1], name)
            known, matrices = True, matrices[:, at]
        elif item is not None and matrices.ndim < 5:
            if matrices.ndim != 4:
                raise ValueError(
                    f"item = {item!r}, but {name} of shape {matrices.shape} has no batch: leave it "
                    "out"
                )
            matrices = matrices[_item(item, len(matrices), name)]  # (heads, queries, keys)
    values, visible = read_matrices(matrices, name)
    what = ["layer", "head"] if np.ndim(matrices) == 4 else ["", "head"]
    if mean is not None:
        axes = {"heads": (1,), "layers": (0,), "both": (0, 1)}[mean]
        if 0 in axes and not what[0]:
            raise ValueError(
                f"mean={mean!r} needs layers, and {name} of shape {np.shape(matrices)} has none; "
                "give mean='heads'"
            )
        values, visible = _mean(values, visible, axes)
        if mean == "heads":  # the layers side by side
            values, visible = values.swapaxes(0, 1), visible.swapaxes(0, 1)
        what = ["", what[0] if mean == "heads" else "head" if mean == "layers" else ""]
    rows, columns = values.shape[:2]
    return Panels(
        values,
        visible,
        [_counted(what[1], i, columns) for i in range(columns)] if known and what[1] else None,
        [f"layer {i}" for i in range(rows)] if known and what[0] else None,
    )


def _counted(what: str, i: int, count: int) -> str:
    """Name a panel; a number alone, where many stand side by side and the first says of what."""
    return f"{what} {i}" if i == 0 or count <= 6 else str(i)


def _layers(record: Any, item: int | None, name: str) -> Any:
    batches = {call.weights.shape[0] for call in record}
    return record.stack(_item(item, max(batches), name) if batches else 0)


def _item(item: int | None, batch: int, name: str) -> int:
    if item is None:
        if batch > 1:
            raise ValueError(f"{name} has a batch of {batch}: give item=0, or another of them")
        return 0
    return position("item", item, batch)


def _mean(values: Floats, visible: Bools, axes: tuple[int, ...]) -> tuple[Floats, Bools]:
    """Return the mean over heads or layers, of what is visible."""
    count = visible.sum(axis=axes, keepdims=True)
    total = np.where(visible, values, 0.0).sum(axis=axes, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), count > 0
