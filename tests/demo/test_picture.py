"""The pictures of the README."""

import xml.etree.ElementTree as ET

from datakit.pack.inspect import LabelRun, PackedRow, PackedSequence, TextPiece
from demo import picture

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_to_scale_and_say_what_was_dropped():
    bars = [
        {"stage": "ingest", "kept": 900, "lost": 100, "inside": "900 kept", "behind": "100 quarantined"},
        {"stage": "pack", "kept": 900, "lost": 0, "inside": "1 < 2 tokens", "behind": "99.0% real tokens"},
    ]
    drawn = ET.fromstring(picture.draw("funnel.svg", bars=bars, total=1000))
    widths = [float(rect.get("width")) for rect in drawn.iter(f"{SVG}rect")]
    assert widths == [486, 54, 486]
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    title = "make demo: 1,000 conversations; orange rows are dropped, each with its reason"
    assert texts == [title, "ingest", "900 kept",
                     "100 quarantined", "pack", "1 < 2 tokens", "99.0% real tokens"]  # fmt: skip


def test_what_is_learned_is_marked_where_its_text_stands():
    def run(learnt: bool, text: str) -> LabelRun:
        return LabelRun(learnt, (TextPiece(text, (1,), False, learnt),))

    runs = (run(False, "a" * 100), run(True, "b" * 10), run(False, "c"))
    lines = picture.label_lines(PackedRow(0, (PackedSequence(0, 0, 3, 1, runs),), 0))
    assert lines == [[(False, 0, "a" * 100), (True, 100, "bbbb")], [(True, 0, "bbbbbb"), (False, 6, "c")]]
    drawn = ET.fromstring(picture.draw("labels.svg", lines=lines))
    assert [(float(r.get("x")), float(r.get("width"))) for r in drawn.iter(f"{SVG}rect")] == [(948, 37.4), (12, 56.2)]
    assert [t.text for t in drawn.iter(f"{SVG}text")][1:] == ["a" * 100, "bbbb", "bbbbbb", "c"]
