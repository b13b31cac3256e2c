"""The axe-core that the tests run is what it says it is, and a newer one is taken only whole."""

import base64
import hashlib
import io
import tarfile

import pytest

from scripts import axe


def test_the_stored_file_is_the_one_that_was_stored():
    digest = hashlib.sha256((axe.STORED / "axe.min.js").read_bytes()).hexdigest()
    assert (axe.STORED / axe.HASH).read_text("utf8") == f"{digest}  axe.min.js\n"
    assert tuple(map(int, axe.stored_version().split("."))) >= (4, 14, 1)
    assert "Mozilla Public License" in (axe.STORED / "LICENSE").read_text("utf8")


def test_a_package_is_stored_with_its_hash_and_another_is_not(tmp_path):
    path = tmp_path / "axe-core-9.0.0.tgz"  # as npm makes one
    with tarfile.open(path, "w:gz") as packed:
        for name in axe.FILES:
            text = b"/*! axe v9.0.0 */"
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text))
    whole = path.read_bytes()
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(whole).digest()).decode()}"
    path.write_bytes(whole + b" ")
    with pytest.raises(SystemExit, match=r"nothing was changed"):
        axe.store(path, integrity, tmp_path)
    assert not (tmp_path / "axe.min.js").exists()
    path.write_bytes(whole)
    axe.store(path, integrity, tmp_path)
    assert axe.stored_version(tmp_path) == "9.0.0"
    digest = hashlib.sha256((tmp_path / "axe.min.js").read_bytes()).hexdigest()
    assert (tmp_path / axe.HASH).read_text("utf8").startswith(digest)


@pytest.mark.parametrize(("version", "status"), [(None, 0), ("99.0.0", 1)])
def test_it_says_whether_there_is_a_newer_one(monkeypatch, capsys, version, status):
    here = axe.stored_version()
    release = {"version": version or here, "integrity": ""}
    monkeypatch.setattr(axe, "newest", lambda: release)
    assert axe.main([]) == status
    assert here in capsys.readouterr().out
