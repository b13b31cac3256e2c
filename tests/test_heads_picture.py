"""The picture of the library in the README."""

import io

import matplotlib.image
import numpy as np

from scripts.heads_picture import PICTURE, drawn


def test_the_stored_picture_is_what_is_drawn():
    stored, now = (
        matplotlib.image.imread(io.BytesIO(png)) for png in (PICTURE.read_bytes(), drawn().png())
    )
    assert stored.shape == now.shape
    # Compressors and rasterisers may differ a little; another weight or word would be seen.
    assert np.abs(stored[..., :3] - now[..., :3]).mean() < 0.005
