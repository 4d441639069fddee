"""What commands say: little by default, all of it where it is asked for, and what was meant where a name is wrong."""

import pytest

from datakit.errors import UsageError
from tests.cli.conftest import done
from tests.files import write_recipe, write_rows
from train.__main__ import run as train


def test_many_files_are_one_line(datakit, project):
    for n in range(30):
        write_rows(project / f"many/f{n:02}.md", [f"Text number {n} about harbours."])
    (project / "many/gone.md").symlink_to("nowhere")
    said = done("ingest many --dataset d")
    lines = said.err.splitlines()
    assert "30 x .md as document, text" in lines
    assert "not read (link to a file that does not exist): gone.md" in lines
    assert not any("f07.md" in line for line in lines)
    shown = datakit("show manifests/d/ingest.json --rows 0").out
    assert "... 20 more inputs" in shown and len(shown.splitlines()) < 30
    assert "f29.md" in datakit("show manifests/d/ingest.json --rows 0 -v").out


def test_a_wrong_command_or_flag_is_answered_with_the_nearest(datakit):
    datakit("pakc").fails(2, "Did you mean 'pack'?")
    assert "Did you mean" not in datakit("nonsense").err
    assert "Did you mean 'models fetch'?" in datakit("models --help").err
    assert "'classifier curve' is gone: `datakit classifier train`" in datakit("classifier curve m").err
    with pytest.raises(UsageError, match=r"No such option '--manifst'\. \(Did you mean one of: .*'--manifest'\?\)"):
        train(["sft", "--manifst", "x"])


def test_a_value_of_an_unknown_key_or_dataset_is_answered_with_the_nearest(datakit, project):
    write_recipe(project, '[dataset]\ninputs = ["a.txt"]\n', "mine")
    for line, words in (
        (["run", "--dataset", "mien"], "holds no dataset 'mien'. Did you mean 'mine'?"),
        (["status", "--dataset", "x"], "holds no dataset 'x'. It holds mine."),
        (["run", "--set", "dedup.treshold=0.8"], "dedup.treshold: unknown key 'treshold'; did you mean 'threshold'?"),
        (["run", "--set", "filter.min_stop_words=1"], "it belongs to [filter.gopher_quality]"),
        (["explain", "none.jsonl:7"], "run it first, with `datakit run --dataset mine`"),
    ):
        said = datakit(*line)
        assert said.code in (1, 2) and words in said.err, said.err
