"""`datakit report`: a dataset on one HTML page that needs nothing else: no network, no other file.

Everything that comes from data is escaped, and a content security policy lets only the page's own script run, by its
hash: the search in the samples. The page follows the reader's light or dark setting and is readable on a telephone.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from datakit.engine.recipe import stage_class
from datakit.manifest import Manifest, ancestors, load_run
from datakit.report.charts import Histogram, draw
from datakit.report.funnel import FunnelStage, funnel
from datakit.report.pairs import LEVELS, Pair, drops
from datakit.report.survey import Survey, survey
from datakit.report.texts import body, hunks, join_words, visible

MOST_PAIRS = 12
"""Duplicates of each level that are shown, the least similar first."""
MOST_LINES = 25
"""Sources or languages in a table; the others are counted."""
MOST_INPUTS = 200
_MOST_PLACES = 8
"""Places of a pair where the texts differ that are shown."""
_MOST_WORDS = 60
"""Words of one stretch that are shown."""

SCRIPT = """
const rows = [...document.querySelectorAll('.sample')];
const entry = document.getElementById('search'), stage = document.getElementById('stage');
const shown = document.getElementById('shown');
function update() {
  const words = entry.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = (!stage.value || row.dataset.stage === stage.value) && words.every(w => text.includes(w));
    row.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${rows.length}`;
}
if (entry) { entry.addEventListener('input', update); stage.addEventListener('change', update); update(); }
"""
STYLE = """
:root { color-scheme: light dark; --text: #1d2430; --page: #fff; --card: #f6f7f9; --line: #d9dde3; --faint: #8a93a0;
  --bar: #3b78c4; --limit: #c8402f; --gone: #fbdedb; --new: #d9f2df; --alarm: #a52a1c; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7ec; --page: #14171c; --card: #1d2128; --line: #343a44;
  --faint: #8b94a3; --bar: #6aa3e8; --limit: #ff8472; --gone: #5b2320; --new: #1d4a2a; --alarm: #ff8472; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0 auto;
  max-width: 76rem; padding: 1rem 1.2rem 4rem; }
h1 { font-size: 1.5rem; margin: .5rem 0 0; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .3rem; overflow-wrap: anywhere; }
.card h3 { margin-top: 0; } .faint { color: var(--faint); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .8rem 0; } a { color: var(--bar); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--faint); font-size: .85rem; } td.n, th.n { text-align: right; white-space: nowrap; }
td { overflow-wrap: anywhere; } td.name { min-width: 6rem; }
td.n { overflow-wrap: normal; }
code { font: .88em ui-monospace, monospace; overflow-wrap: anywhere; }
.meter { background: var(--line); height: .55rem; border-radius: .3rem; min-width: 5rem; margin-top: .5rem; }
.meter i { display: block; background: var(--bar); height: 100%; border-radius: .3rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(19rem, 100%), 1fr)); gap: 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .7rem .9rem; min-width: 0; }
.card svg { width: 100%; height: auto; display: block; }
.alarm { border-left: .3rem solid var(--alarm); background: var(--card); padding: .5rem .9rem; margin: .5rem 0;
  overflow-wrap: anywhere; } .alarm b { color: var(--alarm); }
.find { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: .6rem 0; }
input, select { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: .4rem; padding: .35rem .6rem; max-width: 100%; } input { flex: 1 1 14rem; }
.sample { border-bottom: 1px solid var(--line); padding: .5rem 0; overflow-wrap: anywhere; }
.sample[hidden] { display: none; }
.sample p { margin: .2rem 0 0; overflow-wrap: anywhere; } .tag { color: var(--limit); font-weight: 600; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; margin: 1rem 0; }
.pair > * { min-width: 0; overflow-wrap: anywhere; } .pair .head { grid-column: 1 / -1; }
.pair p { margin: 0; padding: .4rem 0; border-top: 1px solid var(--line); white-space: pre-wrap; }
del { background: var(--gone); text-decoration: none; } ins { background: var(--new); text-decoration: none; }
@media (max-width: 560px) {
  .pair { grid-template-columns: 1fr; } body { padding: .6rem .7rem 3rem; }
}
"""


def report(path: Path) -> str:
    """The page of the result at `path` and of all stages behind it.

    Raises:
        IntegrityError: a shard is missing or damaged.
        MissingExtraError: matplotlib is not installed.
    """
    stages = funnel(path)
    chain = [(s.path, s.manifest) for s in stages if stage_class(s.manifest.stage).makes_rows]
    found = survey(chain)
    last = stages[-1].manifest
    parts = {
        "funnel": _funnel(stages),
        "alarms": _alarms(stages),
        "drops": _drops(stages, found),
        "signals": _signals(found),
        "lengths": _lengths(found),
        "samples": _samples(found),
        "pairs": _pairs(path, stages),
        "packing": _packing(last),
        "lineage": _lineage(path),
    }
    shown = {name: "\n".join(lines) for name, lines in ((n, list(p)) for n, p in parts.items()) if lines}
    links = "".join(f'<a href="#{name}">{name}</a>' for name in shown)
    head = (
        f"<h1>{text(last.dataset)}</h1>\n<p class=faint>{text(last.stage)}, version <code>{last.version}</code>"
        f"{_when(path)}</p>\n<nav>{links}</nav>"
    )
    body_parts = [f'<section id="{name}">\n{lines}\n</section>' for name, lines in shown.items()]
    return whole_page(f"{last.dataset} / {last.stage}", "\n".join([head, *body_parts]), SCRIPT)


def whole_page(title: str, content: str, script: str = "") -> str:
    """A self-contained page; `content` is HTML."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if script:
        policy += f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n{content}\n"
        + (f"<script>{script}</script>\n" if script else "")
        + "</html>\n"
    )


def text(value: object) -> str:
    """A value as HTML text that cannot be markup, move a cursor or turn the direction of what follows."""
    return escape(visible(str(value)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table; cells are HTML, `numbers` are the columns that are aligned to the right."""

    def cell(tag: str, at: int, value: str) -> str:
        kind = " class=n" if at in numbers else " class=name" if tag == "td" and at == 0 else ""
        return f"<{tag}{kind}>{value}</{tag}>"

    lines = ["<tr>" + "".join(cell("th", n, h) for n, h in enumerate(head)) + "</tr>"]
    lines += ["<tr>" + "".join(cell("td", n, v) for n, v in enumerate(row)) + "</tr>" for row in rows]
    return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _when(path: Path) -> str:
    made = load_run(path).get("started", "")
    return f", made {text(made.replace('T', ' ').replace('Z', ' UTC'))}" if made else ""


def _funnel(stages: list[FunnelStage]) -> Iterator[str]:
    yield "<h2>Funnel</h2>"
    most, rows = max((s.manifest.ledger.rows.into for s in stages), default=1), []
    for stage in stages:
        count, tokens = stage.manifest.ledger.rows, stage.manifest.ledger.tokens
        width = 100 * count.kept / most if most else 0
        rows.append([
            f'{text(stage.manifest.stage)}<div class="meter"><i style="width:{width:.2f}%"></i></div>',
            f"{count.into:,}", f"{count.kept:,}", _share(count.kept, count.into), f"{sum(count.dropped.values()):,}",
            f"{count.quarantined:,}", "" if tokens is None else f"{tokens.kept:,}",
            "" if stage.seconds is None else f"{stage.seconds:,.1f}",
            f"{stage.mb_per_s:,.1f}" if stage.mb_per_s else "",
        ])  # fmt: skip
    names = ["stage", "rows in", "kept", "", "dropped", "unreadable", "tokens kept", "s", "MB/s"]
    yield table(names, rows, range(1, 9))


def _alarms(stages: list[FunnelStage]) -> Iterator[str]:
    found = [(s.manifest.stage, alarm) for s in stages for alarm in s.alarms]
    if found:
        yield f"<h2>Alarms ({len(found)})</h2>"
        yield from (f'<p class="alarm"><b>{text(stage)}</b>: {text(alarm)}</p>' for stage, alarm in found)


def _drops(stages: list[FunnelStage], found: Survey) -> Iterator[str]:
    rows = []
    for stage in stages:
        count = stage.manifest.ledger.rows
        lost = sorted(count.dropped.items(), key=lambda item: (-item[1], item[0]))
        lost += [("could not be read", count.quarantined)] if count.quarantined else []
        rows += [[text(stage.manifest.stage), text(r), f"{n:,}", _share(n, count.into)] for r, n in lost]
    if not rows:
        return
    yield "<h2>What was dropped</h2>"
    yield table(["stage", "rule or reason", "rows", "of its rows"], rows, (2, 3))
    for title, counts in (("By source", found.by_source), ("By language", found.by_language)):
        if counts:
            yield f"<h3>{title}</h3>"
            total: Counter[str] = sum(counts.values(), Counter())
            names = [name for name, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))]
            lines = [
                [text(n or "(none)"), *(f"{c[n]:,}" for c in counts.values()), f"{total[n]:,}"]
                for n in names[:MOST_LINES]
            ]
            if rest := names[MOST_LINES:]:
                sums = [sum(c[n] for n in rest) for c in (*counts.values(), total)]
                lines.append([f"{len(rest):,} more", *(f"{n:,}" for n in sums)])
            yield table([title[3:], *map(text, counts), "all"], lines, range(1, len(counts) + 2))


def _signals(found: Survey) -> Iterator[str]:
    if not found.signals:
        return
    yield "<h2>Signals and thresholds</h2>"
    if found.signal_rows:
        yield f'<p class="faint">Signals of {found.signal_rows:,} rows; a red line is the threshold.</p>'
    for name, histograms in found.signals.items():
        yield f'<h3>{text(name)}</h3><div class="grid">'
        yield from (_card(shown) for shown in histograms)
        yield "</div>"


def _lengths(found: Survey) -> Iterator[str]:
    if found.lengths:
        yield '<h2>Lengths of kept rows</h2><div class="grid">'
        for what, shown in found.lengths.items():
            yield _card(shown, f"{found.length_rows[what]:,} rows")
        yield "</div>"


def _card(shown: Histogram, about: str = "") -> str:
    notes = [about] if about else []
    if shown.limit is not None:
        notes.append(f"limit {shown.limit:g}")
    if shown.outside:
        notes.append(f"{shown.outside:,} beyond the right end")
    head = f'<h3>{text(shown.name)} <span class="faint">{", ".join(notes)}</span></h3>'
    return f'<div class="card">{head}{draw(shown)}</div>'


def _samples(found: Survey) -> Iterator[str]:
    if not found.samples:
        return
    stages = dict.fromkeys(sample.stage for sample in found.samples)
    yield "<h2>Samples of what was dropped</h2>"
    yield (
        '<div class="find"><input id="search" type="search" placeholder="words, ids, reasons" aria-label="search">'
        '<select id="stage" aria-label="stage"><option value="">all stages</option>'
        + "".join(f"<option>{text(stage)}</option>" for stage in stages)
        + '</select><span id="shown" class="faint" role="status"></span></div>'
    )
    for s in found.samples:
        about = ", ".join(part for part in (text(s.source), text(s.language)) if part)
        head = f'<span class="tag">{text(s.stage)}: {text(s.reason)}</span> <code>{text(s.id)}</code>'
        yield (
            f'<div class="sample" data-stage="{text(s.stage)}">{head} '
            f'<span class="faint">{about} {text(s.detail)}</span>'
            f'<p dir="auto">{text(s.text)}</p></div>'
        )


def _pairs(path: Path, stages: list[FunnelStage]) -> Iterator[str]:
    """The least similar duplicates of each level, side by side."""
    for stage in stages:
        name = stage.manifest.stage
        if name in LEVELS and stage.manifest.ledger.rows.dropped:
            shown = [pair for pair in drops(stage.path, MOST_PAIRS, name).pairs if pair.similarity < 1]
            if shown:
                yield f"<h2>Doubtful duplicates of {text(name)}, the least similar first</h2>"
                yield '<p class="faint">Left: was dropped. Right: stays. White space does not count.</p>'
                yield from map(_pair, shown)


def _pair(pair: Pair) -> str:
    one, other = body(pair.dropped), body(pair.stays)
    cells = [
        f'<div class="head"><b>{pair.similarity:.3f}</b> <code>{text(pair.dropped["id"])}</code> '
        f'<span class="faint">was dropped,</span> <code>{text(pair.stays["id"])}</code> '
        f'<span class="faint">stays</span></div>'
    ]
    found = list(hunks(one, other, 12))
    for hunk in found[:_MOST_PLACES]:
        for side, tag in ((0, "del"), (1, "ins")):
            words = []
            for stretch in hunk:
                said = escape(join_words(stretch[side], _MOST_WORDS))
                words.append(said if stretch[0] == stretch[1] else f"<{tag}>{said}</{tag}>" if said else "")
            cells.append(f'<p dir="auto">{" ".join(w for w in words if w)}</p>')
    if len(found) > _MOST_PLACES:
        cells.append(f'<p class="head faint">and {len(found) - _MOST_PLACES} more places</p>')
    return f'<div class="pair">{"".join(cells)}</div>'


def _packing(manifest: Manifest) -> Iterator[str]:
    facts = manifest.facts.get("packing")
    if not facts:
        return
    yield "<h2>Packing</h2>"
    sets = {"all": facts} | facts.get("sets", {})
    names = ("packed_rows", "sequences", "density", "label_tokens", "label_share")
    rows = [[text(name), *(_number(counts.get(n)) for n in names)] for name, counts in sets.items()]
    yield table(["set", *(n.replace("_", " ") for n in names)], rows, range(1, 6))
    others = {k.removeprefix("density_"): v for k, v in facts.items() if k.startswith("density_")}
    for name, density in others.items():
        yield f'<p class="faint">Packed as {text(name)}, the density would be {density:.1%}.</p>'


def _number(value: int | float | None) -> str:
    return "" if value is None else f"{value:.1%}" if isinstance(value, float) else f"{value:,}"


def _lineage(path: Path) -> Iterator[str]:
    yield "<h2>Lineage</h2>"
    rows, raw = [], []
    for place, manifest in ancestors(path, against=True):
        parents = [p for p in manifest.parents if "manifest" in p]
        raw += [p for p in manifest.parents if "raw" in p]
        named = ", ".join(f"{text(p['manifest'])} <code>{p['version']}</code>" for p in parents)
        name = text(
            manifest.stage if manifest.dataset == path.parent.name else f"{manifest.dataset} / {manifest.stage}"
        )
        made = text(load_run(place).get("started", ""))
        rows.append([name, f"<code>{manifest.version}</code>", made, named or f"{len(manifest.parents):,} raw files"])
    yield table(["stage", "version", "made", "from"], rows)
    if raw:
        yield f"<details><summary>{len(raw):,} raw files</summary>"
        files = [[text(p["raw"]), f"{p['bytes']:,}", f"<code>{p['sha256'][:16]}…</code>"] for p in raw[:MOST_INPUTS]]
        files += [[f"{len(raw) - MOST_INPUTS:,} more", "", ""]] if len(raw) > MOST_INPUTS else []
        yield table(["file", "bytes", "sha256"], files, (1,)) + "</details>"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""
