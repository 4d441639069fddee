"""The picture of the README."""

import xml.etree.ElementTree as ET

from demo import picture

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_to_scale_and_say_what_was_dropped() -> None:
    bars = [
        {"stage": "ingest", "kept": 900, "lost": 100, "inside": "900 kept", "behind": "100 quarantined"},
        {"stage": "pack", "kept": 900, "lost": 0, "inside": "1 < 2 tokens", "behind": "99.0% real tokens"},
    ]
    drawn = ET.fromstring(picture.draw(bars))
    widths = [float(rect.get("width")) for rect in drawn.iter(f"{SVG}rect")]
    assert widths == [486, 54, 486]
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    title = "make demo: 1,000 conversations; orange rows are dropped, each with its reason"
    assert texts == [title, "ingest", "900 kept",
                     "100 quarantined", "pack", "1 < 2 tokens", "99.0% real tokens"]  # fmt: skip
