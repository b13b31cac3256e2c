"""The encoder of names in PyTorch: what it learns, what must hold, and bad input."""

import numpy as np
import pytest

from d2lmini import NameEncoder, load_names
from d2lmini.names import TRAINED, misspell

torch = pytest.importorskip("torch")

from d2lmini.models import NameModel, train_names  # noqa: E402

LEARNED = load_names().learned


def found(model):
    """Return the share of 250 held-out names that are found among all after one slip."""
    names, rng = load_names().held_out, np.random.default_rng(3)
    encode = NameEncoder(model.state_dict())
    asked = [misspell(name, rng=rng, kinds=TRAINED) for name in names[:250]]
    return ((encode(asked) @ encode(names).T).argmax(axis=-1) == np.arange(250)).mean()


def test_eighty_steps_teach_it_something_that_holds_for_other_names():
    torch.manual_seed(0)
    before = found(NameModel().double())
    after = found(train_names(0, LEARNED, steps=80))
    assert after > before + 0.05, f"{before:.2f} before, {after:.2f} after"


def test_every_parameter_learns():
    torch.manual_seed(0)
    model = NameModel().double()
    assert not model([""]).any()
    assert model([]).shape == (0, 64)
    (model(["garsia", "li"]) @ model(["garcia", "lee"]).T).softmax(dim=-1)[0, 0].log().backward()
    still = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


REFUSED = {
    "train_names(0, ['li'], steps=0)": "128",
    "train_names(0, LEARNED, steps=0, temperature=0)": "temperature must be positive",
    "NameModel()('li')": "names must",
    "NameModel()(['Иван'])": "the name 'Иван'",
}


@pytest.mark.parametrize("call", REFUSED)
def test_bad_input_is_refused_in_words(call):
    with pytest.raises((TypeError, ValueError), match=REFUSED[call]):
        eval(call)
