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
            raise ValueError(f"the parameters differ: {_difference(theirs, ours)}")
        rng = np.random.default_rng(0)
        weights = {name: rng.integers(-2, 3, shape) / 2.0 for name, shape in ours.items()}
        # Not strict: a buffer, such as a mask or a scale, is the learner's own affair.
        module.load_state_dict(
            {name: torch.as_tensor(w) for name, w in weights.items()}, strict=False
        )
        output = module(torch.from_numpy(x))
        _require_that_it_learns(expected, module, x, output)
        return output

    return call


def _require_that_it_learns(expected: Any, module: Any, x: Any, output: Any) -> None:
    """Raise where the output is right and does not move with the weights as the right one does.

    What is cut off, as by ``detach`` or a detour through NumPy, computes and never learns.
    """
    from d2lmini._torch import torch

    if expected is module or not isinstance(output, torch.Tensor):
        return
    expected.load_state_dict(module.state_dict(), strict=False)
    right = expected(torch.from_numpy(x))
    if output.shape != right.shape or not torch.allclose(output, right, rtol=1e-4, atol=1e-5):
        return  # it hears of that first
    theirs, ours = _slopes(module, output), _slopes(expected, right)
    rounding = 1e-5 * max(slope.abs().max() for slope in ours.values())
    still = [
        name
        for name, slope in ours.items()
        if slope.abs().max() > 100 * rounding
        and (theirs[name] - slope).abs().max() > 1e-2 * slope.abs().max() + rounding
    ]
    if still:
        raise ValueError(
            f"the output does not move with {', '.join(still)} as it should, so no training could "
            "change that; did detach, .data or a detour through NumPy cut it off?"
        )


def _slopes(module: Any, output: Any) -> dict[str, Any]:
    """Return the slope of the output's sum of squares along each parameter."""
    from d2lmini._torch import torch

    names = dict(module.named_parameters())
    if not output.requires_grad:
        return {name: torch.zeros_like(weight) for name, weight in names.items()}
    total = (output.double() ** 2).sum()
    slopes = torch.autograd.grad(total, list(names.values()), retain_graph=True, allow_unused=True)
    return {
        name: torch.zeros_like(weight) if slope is None else slope
        for (name, weight), slope in zip(names.items(), slopes, strict=True)
    }


def _shapes(module: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}


def _difference(theirs: dict[str, tuple[int, ...]], ours: dict[str, tuple[int, ...]]) -> str:
    """Say which parameters are missing, which are not asked for, and which have another shape."""
    missing = [f"{name} {shape}" for name, shape in ours.items() if name not in theirs]
    extra = [f"{name} {shape}" for name, shape in theirs.items() if name not in ours]
    other = [
        f"{name} has shape {theirs[name]}, not {shape}"
        for name, shape in ours.items()
        if theirs.get(name, shape) != shape
    ]
    parts = [", ".join(other)]
    parts += [f"missing {', '.join(missing)}"] if missing else []
    parts += [f"not asked for {', '.join(extra)}"] if extra else []
    return "; ".join(part for part in parts if part)
