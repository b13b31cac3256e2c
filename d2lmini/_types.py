"""What an editor and a type checker know of arrays and results; nothing here computes."""

import inspect
from collections.abc import Callable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

__all__ = ["A", "Array", "Attention", "Like"]

Array: TypeAlias = Any  # a numpy.ndarray or a torch.Tensor, where nothing is said of the result
T = TypeVar("T")
if TYPE_CHECKING:  # neither the program nor its type checker needs PyTorch to be installed
    import torch
    from numpy.typing import NDArray
    from typing_extensions import TypeVar as TypeVarWithDefault

    A = TypeVar("A", NDArray[Any], torch.Tensor)  # of the kind that came in
    Like = TypeVarWithDefault("Like", NDArray[Any], torch.Tensor, default=NDArray[Any])
    W = TypeVarWithDefault("W", default=T)
else:
    W = TypeVar("W")
    A = Like = type("array", (), {"__module__": "builtins"})  # as help shows it


class Attention(NamedTuple, Generic[T, W]):
    """What attention returns: ``output, weights = attention(...)``.

    Attributes
    ----------
    output : array, shape (..., n, d_v)
        One mixture of the values for each query.
    weights : array, shape (..., n, m), or None
        How much of each value went into it. Each row sums to 1, or to 0 for a query with no key.
        (None only from `MultiHeadAttention`, where they were not asked for.)
    """

    output: T
    weights: W


if not TYPE_CHECKING:  # ``Attention[numpy.ndarray]`` says enough: the second type is as the first
    Attention.__class_getitem__ = classmethod(GenericAlias)


class Named:
    """A function that is the default of an argument: help shows its name, not where it lies."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the function does."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        """Say its name."""
        return str(self.function.__name__)


F = TypeVar("F", bound=Callable[..., Any])


def readable(function: F) -> F:
    """Give a function a signature whose defaults can be read."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(default=Named(each.default)) if inspect.isfunction(each.default) else each
        for each in signature.parameters.values()
    ]
    vars(function)["__signature__"] = signature.replace(parameters=parameters)
    return function
