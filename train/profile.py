"""Where the time of a step goes: marks for profilers, and a trace of some steps.

Chrome (chrome://tracing), Perfetto and TensorBoard read the trace; Nsight Systems sees the marks as NVTX ranges.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

WAIT, WARMUP = 1, 1
"""Steps before the trace: the first allocates, and the profiler itself needs one."""


@contextlib.contextmanager
def mark(name: str, device: torch.device) -> Iterator[None]:
    """A part of a step, by its name in traces."""
    cuda = torch.cuda.nvtx.range(name) if device.type == "cuda" else contextlib.nullcontext()
    with cuda, record_function(name):
        yield


class Profile:
    """A trace of `steps` steps of a run, in `out/profile.json`."""

    def __init__(self, steps: int, out: Path) -> None:
        self.place = out / "profile.json"
        cuda = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
        self._profile = profile(
            activities=[ProfilerActivity.CPU, *cuda],
            schedule=schedule(wait=WAIT, warmup=WARMUP, active=steps, repeat=1),
            on_trace_ready=self._write,
        )
        self._profile.start()

    def step(self) -> None:
        """A step has ended."""
        self._profile.step()

    def close(self) -> None:
        """The run has ended; of a trace that is not complete, what there is is written."""
        self._profile.stop()

    def _write(self, found: "profile") -> None:
        found.export_chrome_trace(str(self.place))
        by = "self_device_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        print(found.key_averages().table(sort_by=by, row_limit=12, max_name_column_width=48), flush=True)
        print(f"[train] profile: {self.place}", flush=True)
