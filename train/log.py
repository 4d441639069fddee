"""Logs of a run: lines, metrics.jsonl, a page with the loss curve, TensorBoard, a profiler trace.

TensorBoard is optional: `auto` uses it where it is installed. Other trackers read its files or metrics.jsonl.
Chrome (chrome://tracing), Perfetto and TensorBoard read the trace; Nsight Systems shows the marks as NVTX ranges.
"""

import contextlib
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from datakit.storage import write_whole
from train.config import LOG, LoopConfig

PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
"""Dense bf16 operations per second from data sheets, by a part of the device name."""
COLUMNS = 100
"""Characters of a log line."""
Record = dict[str, Any]
"""The numbers of a step, as in metrics.jsonl; those that an objective logs come last."""
NAMES = ("step", "epoch", "loss", "lr", "grad_norm", "label_tokens", "all_tok_s", "real_tok_s", "label_tok_s",
         "step_ms", "data_wait", "mfu")  # fmt: skip
"""What every record has. mfu: the share of the hardware's peak (PaLM: Chowdhery et al., 2022), None if unknown."""


def line(record: Record, epochs: int, seconds_left: float) -> str:
    """The log line of a step; it starts like MiniLLM's, so that parsers of those logs work.

    What an objective logs goes on in a second line if it must. Other numbers follow if they fit.
    """
    speeds = record["all_tok_s"], record["step_ms"], timedelta(seconds=round(seconds_left))
    parts = [
        f"[train] step={record['step']} epoch={record['epoch']}/{epochs} loss={record['loss']:.4f} "
        f"lr={record['lr']:.2e} tok/s={speeds[0]:.0f} | step_ms={speeds[1]:.0f} eta={str(speeds[2]).replace(' ', '')}"
    ]
    parts += [f"mfu={record['mfu']:.1%}"] if record["mfu"] else []
    parts += [f"{name}={value:.4g}" for name, value in record.items() if name not in NAMES]
    lines = textwrap.wrap(" ".join(parts), COLUMNS, subsequent_indent="        ", break_on_hyphens=False)
    more = {"norm": f"{record['grad_norm']:.3g}", "label_tok/s": f"{record['label_tok_s']:.0f}",
            "real_tok/s": f"{record['real_tok_s']:.0f}", "data_wait": f"{record['data_wait']:.1%}"}  # fmt: skip
    for name, text in more.items():
        if len(lines[-1]) + len(name) + len(text) + 2 <= COLUMNS:
            lines[-1] += f" {name}={text}"
    return "\n".join(lines)


def curve(records: Sequence[Record], evaluations: Sequence[Record] = ()) -> str:
    """The losses of a run as HTML with SVG: every step, a running mean, and a dot for each evaluation.

    Steps without labels are left out. The plot has the units of the data, and is stretched to the size of its box.
    """
    points = [(r["step"], r["loss"]) for r in records if r["label_tokens"]]
    dots = [(r["step"], r["loss"]) for r in evaluations if r.get("label_tokens")]
    if not points:
        return ""
    means, mean = list[tuple[float, float]](), points[0][1]
    for i, (step, loss) in enumerate(points):
        mean += (loss - mean) / min(i + 1, 20)
        means.append((step, mean))
    losses, first, last = [loss for _, loss in points + dots], points[0][0], points[-1][0]
    low, high = min(losses), max(losses)
    line = '<path stroke="{}" stroke-width="{}" vector-effect="non-scaling-stroke" d="M{}"/>'
    drawn = []
    for found, color, width in ((points, "#9bd", 1), (means, "#136", 2)):
        thin = found[:: max(1, len(found) // 2000)]  # more points than pixels show nothing
        drawn.append(line.format(color, width, " ".join(f"{step},{loss:.6g}" for step, loss in thin)))
    drawn += [line.format("#c40", 6, f"{step},{loss:.6g}h0") for step, loss in dots]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{first} {-high} {max(1, last - first)} {high - low or 1}" '
        'preserveAspectRatio="none" style="width:100%;max-width:720px;height:280px;overflow:visible">'
        f'<g fill="none" stroke-linecap="round" transform="scale(1,-1)">{"".join(drawn)}</g></svg>'
        f"<p>loss {high:.3g} to {low:.3g}, step {first} to {last}</p>"
    )


def _live() -> Callable[[str], None]:
    """A function that shows HTML in a notebook, in place of the HTML before; elsewhere it does nothing."""
    notebook = sys.modules.get("IPython")
    if notebook is None or (shell := notebook.get_ipython()) is None or not hasattr(shell, "kernel"):
        return lambda html: None
    show = notebook.display
    shown = show.display(show.HTML(""), display_id=True)
    return lambda html: shown.update(show.HTML(html))


class RecordFile:
    """A file with one JSON line per step; a resumed run first removes lines from after its checkpoint."""

    def __init__(self, path: Path, after_step: int) -> None:
        self.path, self.records = path, list[Record]()
        for text in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # incomplete after a crash
                found = json.loads(text)
                self.records += [found] if found["step"] <= after_step else []
        if path.is_file():
            write_whole(path, "".join(f"{json.dumps(record)}\n" for record in self.records).encode())

    def write(self, record: Record) -> None:
        """Append a record."""
        self.records.append(record)
        with self.path.open("a", encoding="utf-8") as f:
            f.write(json.dumps(record) + "\n")


def peak_flops(device: torch.device) -> float | None:
    """Peak operations per second of the device, if known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)


class Log:
    """All logs of a run: lines, metrics.jsonl, eval.jsonl, loss.html, TensorBoard, a trace of `profile` steps."""

    def __init__(self, config: LoopConfig, first_step: int) -> None:
        out = Path(config.out)
        self.metrics, self.evaluations = (RecordFile(out / f"{n}.jsonl", first_step) for n in ("metrics", "eval"))
        self.page, self.live, self.step_ms = out / "loss.html", _live(), 0.0
        """`step_ms`: smoothed over about 20 steps, for the time that is left."""
        self.closing = contextlib.ExitStack()
        """Closes all logs; to be left after errors, too."""
        self.board: Any = None
        if {"auto", "tensorboard"} & {*config.report_to} and find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            purged = first_step + 1 if first_step else None
            self.board = self.closing.enter_context(SummaryWriter(str(out / "tensorboard"), purge_step=purged))
        self.profiler = self.closing.enter_context(profiler(config.profile, out)) if config.profile else None

    def write(self, record: Record) -> None:
        """Log a training step."""
        self.metrics.write(record)
        self.step_ms += (record["step_ms"] - self.step_ms) * (0.05 if self.step_ms else 1.0)
        self._track(record["step"], {k: v for k, v in record.items() if isinstance(v, int | float) and k != "step"})
        if self.profiler:
            self.profiler.step()

    def show(self, record: Record, steps: int, epochs: int) -> None:
        """Log the line of a step of `steps`, and draw the curve."""
        LOG.info(line(record, epochs, (steps - record["step"]) * self.step_ms / 1e3))
        found = curve(self.metrics.records, self.evaluations.records)
        self.live(found)
        write_whole(self.page, f"<!doctype html><title>loss</title><h3>{self.page.parent.name}</h3>{found}\n".encode())

    def evaluated(self, step: int, record: Record) -> None:
        """Log an evaluation; eval.jsonl also gets its sources."""
        self.evaluations.write(record)
        self._track(step, {f"eval/{name}": record[name] for name in ("loss", "perplexity")})

    def _track(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items() if self.board else ():
            self.board.add_scalar(name if "/" in name else f"train/{name}", value, step)


@contextlib.contextmanager
def mark(name: str, device: torch.device) -> Iterator[None]:
    """Mark a part of a step by name in profiler traces."""
    cuda = torch.cuda.nvtx.range(name) if device.type == "cuda" else contextlib.nullcontext()
    with cuda, record_function(name):
        yield


def profiler(steps: int, out: Path) -> profile:
    """A profiler that writes a trace of `steps` steps, also an incomplete one, and prints a table."""

    def write(found: profile) -> None:
        found.export_chrome_trace(str(path := out / "profile.json"))
        by = "self_device_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        LOG.info(found.key_averages().table(sort_by=by, row_limit=12, max_name_column_width=48))
        LOG.info(f"profile: {path}")

    cuda = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    when = schedule(wait=1, warmup=1, active=steps, repeat=1)  # the first step allocates memory
    return profile(activities=[ProfilerActivity.CPU, *cuda], schedule=when, on_trace_ready=write)
