"""Fonts that were cut are kept, and a kept one is what would be cut."""

from lettering import face

LETTERS = frozenset("abc")


def test_what_is_kept_is_what_was_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(face, "KEPT", tmp_path / "kept")
    first = face.subset_of("Code", LETTERS, wght=600)
    assert len(list(face.KEPT.iterdir())) == 2  # the whole font of this weight, and its letters
    with monkeypatch.context() as others:
        others.setattr(face.subset, "load_font", None)  # would fail, were it called
        assert face.subset_of("Code", LETTERS, wght=600) == first
    assert face.subset_of("Code", LETTERS | {"d"}, wght=600) != first
    assert face.subset_of("Code", LETTERS, wght=400) != first
    face.KEPT.joinpath("old").touch()
    monkeypatch.setattr(face, "MONTH", -1)
    face.forget()
    assert list(face.KEPT.iterdir()) == []


def test_without_a_place_for_it_fonts_are_cut_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(face, "KEPT", tmp_path / "kept")
    first = face.subset_of("Code", LETTERS)
    (tmp_path / "file").touch()
    monkeypatch.setattr(face, "KEPT", tmp_path / "file" / "kept")
    assert face.subset_of("Code", LETTERS) == first
