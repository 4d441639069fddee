"""Text of the pages of a web archive by datatrove's WARC reader and its trafilatura extractor.

    python web_datatrove.py ARCHIVE OUTPUT.jsonl

The environment is that of requirements-datatrove.txt. Writes {"url", "text"} of each page with text.
"""

import json
import sys
from pathlib import Path

from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.readers import WarcReader

if __name__ == "__main__":
    archive, output = map(Path, sys.argv[1:])
    reader = WarcReader(str(archive.parent), glob_pattern=archive.name, file_progress=False, doc_progress=False)
    extractor = Trafilatura(timeout=60, deduplicate=False)
    with output.open("w", encoding="utf-8") as out:
        for page in extractor.run(reader.run()):
            out.write(json.dumps({"url": page.metadata["url"], "text": page.text}) + "\n")
