"""Train a small model, with a bar that shows how far it is and leaves nothing behind."""

import sys
from collections.abc import Callable, Iterator

from d2lmini._checks import positive_number, whole_number
from d2lmini._torch import Tensor, nn, torch

__all__ = ["progress", "train"]


def progress(steps: int, label: str) -> Iterator[int]:
    """Count the steps, with a bar of tqdm where somebody can see it.

    In a notebook and in a terminal the bar is taken away at the end. So what is stored of a
    notebook is the same with and without it. Without tqdm there is no bar.

    Parameters
    ----------
    steps : int
    label : str
        Stands before the bar.

    Yields
    ------
    int
        0, 1, …, steps - 1.

    Examples
    --------
    >>> list(progress(3, "counting"))
    [0, 1, 2]
    """
    steps = whole_number("steps", steps, at_least=0)
    clear = _clear_of_notebook()
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        yield from range(steps)
        return
    bar = tqdm(
        range(steps),
        desc=label,
        leave=False,
        file=sys.stdout if clear else sys.stderr,
        disable=None if clear is None else False,  # None: where no terminal is
        bar_format="{desc}: {percentage:3.0f}% {bar} {n}/{total}",
        ncols=70,
    )
    try:
        yield from bar
    finally:
        bar.close()
        if clear is not None:
            clear()


def _clear_of_notebook() -> Callable[[], object] | None:
    """Return what clears the output of the running cell; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import clear_output

    return clear_output


def train(
    model: nn.Module,
    loss_of_step: Callable[[int], Tensor],
    *,
    steps: int,
    learning_rate: float,
    label: str = "training",
) -> list[float]:
    """Let Adam change the parameters of a model so that a loss becomes small.

    In the second half the learning rate falls in a straight line to 0, so that the last steps no
    longer jump about.

    In a notebook, train before the cell prints anything: the bar clears the output of its cell.

    Parameters
    ----------
    model : torch.nn.Module
    loss_of_step : callable
        Takes the number of the step, from 0, and returns the loss, one number.
    steps : int
    learning_rate : float
    label : str
        Stands before the bar.

    Returns
    -------
    list of float
        The loss before each step.

    Raises
    ------
    TypeError, ValueError
        If `steps` is not a whole number from 0 on, or `learning_rate` not positive.

    References
    ----------
    Kingma and Ba, "Adam: a method for stochastic optimization", 2015.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> line = torch.nn.Linear(1, 1)
    >>> losses = train(line, lambda step: line(torch.ones(1, 1)).square().sum(), steps=50,
    ...                learning_rate=0.1)
    >>> losses[-1] < losses[0]
    True
    """
    adam = torch.optim.Adam(model.parameters(), lr=positive_number("learning_rate", learning_rate))
    losses = []
    for step in progress(steps, label):
        adam.param_groups[0]["lr"] = learning_rate * min(1, 2 - 2 * step / steps)
        adam.zero_grad()
        loss = loss_of_step(step)
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        losses.append(loss.item())
    return losses
