"""Check a PyTorch module: give it and the reference the same weights, and compare what they do."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["call_with_the_weights_of"]

Build = Callable[..., Any]  # sizes -> module


def call_with_the_weights_of(reference: Build) -> Callable[..., Any]:
    """Return the `call` of an exercise whose cases are the sizes of a module and its input."""

    def call(build: Build, *arguments: Any) -> Any:
        from d2lmini._torch import nn, torch

        *sizes, x = arguments
        with torch.random.fork_rng(devices=[]):  # new layers draw weights, which are not used
            module, expected = build(*sizes), reference(*sizes)
        if not isinstance(module, nn.Module):
            raise TypeError(f"expected a subclass of nn.Module, got {type(module).__name__}")
        theirs, ours = _shapes(module), _shapes(expected)
        if theirs != ours:
            raise ValueError(f"the parameters are {_in_words(theirs)}; expected {_in_words(ours)}")
        rng = np.random.default_rng(0)
        weights = {name: rng.integers(-2, 3, shape) / 2.0 for name, shape in ours.items()}
        # Not strict: a buffer, such as a mask or a scale, is the learner's own affair.
        module.load_state_dict(
            {name: torch.as_tensor(w) for name, w in weights.items()}, strict=False
        )
        return module(torch.from_numpy(x))

    return call


def _shapes(module: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}


def _in_words(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in sorted(shapes.items())) or "none"
