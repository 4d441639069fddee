"""Web pages: ingest of a WARC archive beside datatrove's WARC reader with trafilatura.

    python bench/web.py make FOLDER ARCHIVE.warc.gz --pages 2000
    python bench/web.py time ARCHIVE.warc.gz SCRATCH --peer PYTHON

`make` writes HTML files of a folder, spread evenly over it, as an archive. `time` runs whole commands with one worker,
in turn, and prints the pages with text by processor second (children included); then how many pages have the peer's
text where the extractor is trafilatura, too. PYTHON is that of an environment with peers/requirements-datatrove.txt;
its trafilatura must be the version of ours for equal texts.
"""

import argparse
import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from fastwarc.warc import WarcRecord, WarcRecordType
from measure import timed

HERE = Path(__file__).parent


def make(folder: Path, archive: Path, pages: int) -> None:
    """Write an archive with a gzip member for each page."""
    paths = sorted(p for p in folder.glob("**/*.html") if 4000 < p.stat().st_size < 500_000)
    paths = paths[:: max(1, len(paths) // pages)][:pages]
    with archive.open("wb") as out:
        for number, path in enumerate(paths):
            record, body = WarcRecord(), path.read_bytes()
            record.init_headers(record_type=WarcRecordType.response, record_urn=b"uuid:" + b"%032x" % number)
            record.headers["WARC-Target-URI"] = f"https://example.org/{path.relative_to(folder)}"
            record.headers["WARC-Date"] = "2024-05-01T00:00:00Z"
            record.headers["WARC-Identified-Payload-Type"] = "text/html"
            record.headers["Content-Type"] = "application/http; msgtype=response"
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
            record.set_bytes_content(head.encode() + body)
            plain = io.BytesIO()
            record.write(plain)
            out.write(gzip.compress(plain.getvalue(), mtime=0))
    print(f"{len(paths)} pages, {sum(p.stat().st_size for p in paths) / 1e6:.1f} MB")


def texts_of(output: Path) -> Iterator[tuple[str, str]]:
    """(url, text) of the rows that an ingest kept."""
    for path in sorted(output.glob("kept/*.parquet")):
        table = pq.read_table(path, columns=["url", "text"])
        yield from zip(table["url"].to_pylist(), table["text"].to_pylist(), strict=True)


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("archive", type=Path)
    making.add_argument("--pages", type=int, default=2000)
    timing = commands.add_parser("time")
    timing.add_argument("archive", type=Path)
    timing.add_argument("scratch", type=Path)
    timing.add_argument("--peer", required=True)
    timing.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    if args.command == "make":
        return make(args.folder, args.archive, args.pages)
    found: dict[str, dict[str, str]] = {}
    for _ in range(args.rounds):
        for name in ("resiliparse", "trafilatura"):
            output = args.scratch / name
            command = [sys.executable, "-m", "datakit", "ingest", str(args.archive), "--output", str(output)]
            command += ["--columns", "typed", "--extractor", name, "--workers", "1"]
            _, seconds, *_ = timed(command, output)
            found[name] = dict(texts_of(output))
            print(f"datakit, {name}: {len(found[name])} pages, {len(found[name]) / seconds:.0f} a CPU second")
        output = args.scratch / "peer.jsonl"
        command = [args.peer, str(HERE / "peers" / "web_datatrove.py"), str(args.archive), str(output)]
        _, seconds, *_ = timed(command)
        rows = map(json.loads, output.read_text(encoding="utf-8").splitlines())
        found["peer"] = {row["url"]: row["text"] for row in rows}
        print(f"datatrove, trafilatura: {len(found['peer'])} pages, {len(found['peer']) / seconds:.0f} a CPU second")
    ours, theirs = found["trafilatura"], found["peer"]
    equal = sum(ours.get(url) == text for url, text in theirs.items())
    print(f"equal texts: {equal} of {len(theirs)}; only ours {len(ours.keys() - theirs.keys())}")
    return None


if __name__ == "__main__":
    main()
