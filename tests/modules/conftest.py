"""What the tests of the PyTorch modules share."""

import pytest


@pytest.fixture(autouse=True)
def seeded():
    """Give each test random numbers of its own, always the same, and one thread."""
    import torch

    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
