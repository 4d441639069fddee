"""Damage on purpose: killed runs, failing disks, flipped bits, hostile files. Nothing may be lost or believed.

    python -m bench.campaign FOLDER                      all: 1,000 kills, 500 faults, 1,000 flips, 10,000 inputs
    python -m bench.campaign FOLDER --short              the same in about ten minutes
    python -m bench.campaign FOLDER kills=50 inputs=200  some parts, that often

FOLDER keeps the projects and `trials.jsonl`, one line for each trial. A campaign that is stopped goes on where it was,
since a trial is a function of its number. Parts:

    kills    `datakit run` of two small projects (text in threads, conversations in processes) gets `kill -9` for the
             parent, for a worker, for the whole group, SIGTERM or SIGINT, at a random moment. It is run and killed
             again until it is whole. Then every file must be the one of a run that nobody touched.
    faults   the n-th write, rename, fsync, link, mkdir or open for writing of a run fails with ENOSPC or EIO, once or
             from then on, in a library between Python and the system (LD_PRELOAD). The run must end with a clear
             error, or not need the file; the next run must give the bytes of an undisturbed one.
    flips    a bit of a file of a finished or interrupted project is flipped, or the file is cut: shards, manifests,
             history, packed files, indexes, work records, the cache of hashes. Then something uses the project. It
             must refuse with a clear error, mend the file, or print what it prints about the whole project.
    inputs   files of every format that is read, broken by bit flips, cuts, insertions, large numbers and splices. Each
             is ingested, or refused with a clear error; every line of JSON lines is a row or a quarantined record.

Every run is a child of this process, which has imported datakit and never used it: a start costs milliseconds.
"""

import argparse
import bz2
import ctypes
import gzip
import importlib
import json
import lzma
import os
import pkgutil
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datakit
from tests.engine.corpus import RECIPE, WORDS, results, write_corpus
from tests.files import write_recipe

COUNTS = {"kills": 1000, "faults": 500, "flips": 1000, "inputs": 10_000}
SHORT = {"kills": 100, "faults": 30, "flips": 100, "inputs": 1_000}
TIMEOUT_S = 300
RIDDLES = ("Traceback (most recent call last)", "this is an error in datakit", "Segmentation", "AssertionError")
"""What no output may hold."""


# Children.


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int
    """The exit code, or minus the signal."""
    out: str
    seconds: float

    @property
    def riddle(self) -> str:
        """What a user could not understand; empty if there is nothing."""
        found = next((r for r in RIDDLES if r in self.out), "")
        if not found and self.code not in (0, 1, 2, 3, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT):
            found = f"ended with {self.code}"
        at = max(self.out.find(found), 0)
        return f"{found}: {self.out[at : at + 3000]}" if found else ""


def fork(work: Callable[[], int], folder: Path, log: Path) -> int:
    """Start a child in a session of its own; what it prints goes to `log`. Returns its process id."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 99
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a campaign in the background has it ignored
        os.chdir(folder)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        code = work()
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def command(*args: str) -> Callable[[], int]:
    """A datakit command as work for a child."""

    def work() -> int:
        from datakit.cli.main import main

        os.environ["XDG_CACHE_HOME"] = str(Path("cache").absolute())
        main(list(args))
        return 0

    return work


def ended(pid: int, log: Path, begin: float, timeout_s: float = TIMEOUT_S) -> Ended:
    """Wait for a child; one that hangs is killed, and ends with -1000."""
    hung = False
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() - begin > timeout_s and not hung:
            os.killpg(pid, signal.SIGKILL)
            hung = True
        time.sleep(0.005)
    code = -1000 if hung else os.waitstatus_to_exitcode(status)
    return Ended(code, log.read_text(errors="replace") if log.exists() else "", time.monotonic() - begin)


def call(project: Path, *args: str) -> Ended:
    """Run a datakit command in a project to its end."""
    log, begin = project.with_suffix(".log"), time.monotonic()
    return ended(fork(command(*args), project, log), log, begin)


def session(pid: int) -> list[int]:
    """The living processes of a session, but for its leader and Python's own helper for shared memory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != pid:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                helper = b"resource_tracker" in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[3]) == pid and fields[0] != "Z" and not helper:
                found.append(int(entry.name))
    return found


# Projects.


def text_project(root: Path) -> None:
    """Documents, some of them duplicates: most stages run in threads."""
    write_corpus(root / "raw", rows=100, files=2)
    write_recipe(root, RECIPE.replace("[filter.gopher_quality]", "[dedup]\nsave_index = true\n[filter.gopher_quality]"))


def chat_project(root: Path) -> None:
    """Conversations in several shards: they are tokenized in processes."""
    rng = random.Random(7)
    (root / "raw").mkdir(parents=True)
    for name in ("a", "b"):
        with (root / f"raw/{name}.jsonl").open("w") as file:
            for n in range(500):
                said = [" ".join(rng.choices(WORDS, k=rng.randint(60, 300))) for _ in range(4)]
                roles = ("user", "assistant") * 2
                turns = [{"role": r, "content": f"{n} {s}."} for r, s in zip(roles, said, strict=True)]
                file.write(json.dumps({"id": f"{name}{n}", "messages": turns}) + "\n")
    stages = 'stages = ["ingest", "dedup", "tokenizer", "tokenize", "pack"]'
    text = RECIPE.replace('kind = "text"', 'kind = "sft"').split("stages =")[0] + stages
    write_recipe(root, f"{text}\n[ingest]\nshard_mb = 1\n[tokenizer]\nvocab_size = 600\n[pack]\nseq_len = 512\n")


PROJECTS = {"text": text_project, "chat": chat_project}


def differences(found: dict[str, bytes], whole: dict[str, bytes]) -> str:
    """The first files that differ."""
    names = [n for n in sorted(found.keys() | whole.keys()) if found.get(n) != whole.get(n)]
    return ", ".join(names[:4])


@dataclass
class Whole:
    """A project that ran undisturbed."""

    root: Path
    files: dict[str, bytes]
    seconds: float

    @classmethod
    def of(cls, folder: Path, name: str) -> "Whole":
        """Make it, or find that of an earlier campaign. It runs twice: the first run may compile kernels."""
        for number in range(2):
            root = folder / f"whole-{name}{number}"
            shutil.rmtree(root, ignore_errors=True)
            PROJECTS[name](root)
            done = call(root, "run", "--dataset", "d", "--workers", "2")
            if done.code:
                sys.exit(f"{root}: an undisturbed run fails:\n{done.out}")
        return cls(root, results(root), done.seconds)


def fresh(root: Path, whole: Whole) -> None:
    """Make a project with the same inputs and recipe that never ran."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(whole.root / "raw", root / "raw")
    write_recipe(root, (whole.root / "manifests/d/recipe.toml").read_text())


# What was found.


class Trials:
    """The trials of a campaign, in a file that grows by a line for each."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "trials.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.done = [json.loads(line) for line in lines if line.endswith("}")]

    def next_number(self, part: str) -> int:
        """The first number that no trial of the part has."""
        return 1 + max((t["number"] for t in self.done if t["part"] == part), default=-1)

    def add(self, part: str, number: int, what: str, outcome: str, fault: str = "") -> None:
        """A trial ended; `fault` says what is wrong."""
        trial = {"part": part, "number": number, "what": what, "outcome": outcome, "fault": fault}
        self.done.append(trial)
        with self.path.open("a") as file:
            file.write(json.dumps(trial) + "\n")
        if fault:
            print(f"{part} {number}: {what}: {outcome}: {fault[:1500]}", flush=True)

    def table(self) -> str:
        """Counts by part and kind of damage, and the faults."""
        lines, groups = [], dict[tuple[str, str], list[dict[str, Any]]]()
        for trial in self.done:
            for what in (trial["what"].split(":")[0], "all"):
                groups.setdefault((trial["part"], what), []).append(trial)
        for (part, what), trials in sorted(groups.items()):
            outcomes = ", ".join(f"{n} {o}" for o, n in Counter(t["outcome"] for t in trials).most_common())
            faults = sum(bool(t["fault"]) for t in trials)
            lines.append(f"{part:<8}{what:<34}{len(trials):>8}{faults:>8}  {outcomes}")
        return "\n".join(lines)


# Kills.


KILLS = ("kill -9 parent", "kill -9 worker", "kill -9 group", "SIGTERM", "SIGINT")
IN_A_ROW = 10
"""A project is killed so often at most; then it may end."""


def kills(folder: Path, trials: Trials, count: int, seed: int) -> None:
    """Kill runs at random moments."""
    wholes = {name: Whole.of(folder, name) for name in PROJECTS}
    number = trials.next_number("kills")
    while number < count:
        rng = random.Random(f"kills {seed} {number}")
        name = rng.choice(list(PROJECTS))
        whole, root = wholes[name], folder / "killed"
        fresh(root, whole)
        for _ in range(IN_A_ROW):
            how, delay = rng.choice(KILLS), rng.uniform(0, 0.9) * whole.seconds
            run, struck = kill_once(root, how, delay)
            if not struck:
                break
            fault = run.riddle
            if how == "SIGINT" and run.code == 130 and "interrupted" not in run.out:
                fault = fault or f"no word about the interruption: {run.out[-300:]}"
            trials.add("kills", number, how, f"ended with {run.code}", fault)
            number += 1
        run = call(root, "run", "--dataset", "d", "--workers", "2")
        fault = run.riddle or (f"ended with {run.code}: {run.out[-800:]}" if run.code else "")
        fault = fault or differences(results(root), whole.files)
        if fault:
            shutil.copytree(root, folder / f"fault-kills-{number}", dirs_exist_ok=True)
        trials.add("kills", number, "the run after them", "the same bytes" if not fault else "differs", fault)
        number += 1


def kill_once(root: Path, how: str, delay: float) -> tuple[Ended, bool]:
    """A run that gets a signal after a delay: (how it ended, whether it was still running)."""
    log, begin = root.with_suffix(".log"), time.monotonic()
    pid = fork(command("run", "--dataset", "d", "--workers", "2"), root, log)
    while time.monotonic() - begin < delay:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return ended(pid, log, begin), False
        time.sleep(0.002)
    if how == "kill -9 worker":
        while not (workers := session(pid)):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return ended(pid, log, begin), False
            time.sleep(0.005)
        os.kill(workers[-1], signal.SIGKILL)
    elif how == "kill -9 group":
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}.get(how, signal.SIGKILL))
    run = ended(pid, log, begin)
    until = time.monotonic() + 20
    while (left := session(pid)) and time.monotonic() < until:
        time.sleep(0.02)
    if left:
        os.killpg(pid, signal.SIGKILL)
        return Ended(-2000, f"workers {left} live on after their parent", run.seconds), True
    return run, True


# Faults of the disk.


OPERATIONS = ("write", "rename", "fsync", "link", "mkdir", "open")


def faults(folder: Path, trials: Trials, count: int, seed: int) -> None:
    """Let one operation of a run fail, in a process that has the library loaded from its start."""
    if "campaign" not in os.environ.get("LD_PRELOAD", ""):
        source, library = Path(__file__).with_name("campaign_shim.c"), folder / "campaign-shim.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", library, source, "-ldl"], check=True)
        arguments = [sys.executable, "-m", "bench.campaign", str(folder), f"faults={count}", "--seed", str(seed)]
        subprocess.run(arguments, env=os.environ | {"LD_PRELOAD": str(library)}, check=True)
        trials.done = Trials(folder).done
        return
    whole = Whole.of(folder, "text")
    for number in range(trials.next_number("faults"), count):
        rng = random.Random(f"faults {seed} {number}")
        operation = rng.choice(OPERATIONS)
        code, onward = rng.choice((28, 5)), rng.random() < 0.4  # ENOSPC, EIO
        nth = int(2 ** rng.uniform(0, {"write": 11, "link": 2}.get(operation, 7)))
        root = folder / "faulty"
        fresh(root, whole)
        run = faulty_run(root, f"{operation} {nth} {code} {int(onward)} {root}/")  # the log lies beside it
        fault = run.riddle
        if not fault and run.code == 0 and (wrong := differences(results(root), whole.files)):
            fault = f"exit code 0, but {wrong} differ"
        if not fault and run.code and not any(s in run.out for s in ("No space left", "Input/output error")):
            fault = f"the message does not say what failed: {run.out[-600:]}"
        again = call(root, "run", "--dataset", "d", "--workers", "2")
        fault = fault or again.riddle or (f"then {again.code}: {again.out[-600:]}" if again.code else "")
        fault = fault or differences(results(root), whole.files)
        said = {28: "ENOSPC", 5: "EIO"}[code]
        what = f"{operation} {said}{' from then on' if onward else ''}:{nth}"
        trials.add("faults", number, what, "not needed" if run.code == 0 else "clear error, then whole", fault)


def faulty_run(root: Path, fault: str) -> Ended:
    """A run in which one operation fails."""

    def work() -> int:
        os.environ["CAMPAIGN_FAULT"] = fault
        ctypes.CDLL(os.environ["LD_PRELOAD"]).campaign_arm()
        return command("run", "--dataset", "d", "--workers", "2")()

    log, begin = root.with_suffix(".log"), time.monotonic()
    return ended(fork(work, root, log), log, begin)


# Flipped bits and cut files.


USES = {
    "run": "run --dataset d --workers 2",
    "later stages": "run --dataset d --workers 2",
    "against": "dedup raw/part-0.jsonl --kind text --against manifests/d/dedup.json --output new --allow-empty",
    "verify": "verify manifests/d/pack.json",
    "show": "show manifests/d/filter.json",
    "explain": "explain r7 --manifest manifests/d/filter.json",
    "pairs": "pairs manifests/d/dedup.json",
    "peek": "peek manifests/d/pack.json",
    "lint": "lint manifests/d/pack.json",
    "unpack": "unpack manifests/d/pack.json --output text.jsonl",
}
"""Commands that read the files of a project."""


def flips(folder: Path, trials: Trials, count: int, seed: int) -> None:
    """Damage a file of a project, then use the project."""
    number = trials.next_number("flips")
    if number >= count:
        return
    whole = Whole.of(folder, "text")
    root = folder / "flipped"
    states = {"finished": whole.root, "interrupted": interrupted(folder, whole)}
    said = dict[str, Ended]()
    for use in USES:
        restore(root, whole.root)
        said[use] = use_project(root, use)
        if said[use].code:
            sys.exit(f"{use} fails on a whole project:\n{said[use].out}")
    for number in range(number, count):  # noqa: B020
        rng = random.Random(f"flips {seed} {number}")
        state = rng.choices(list(states), (4, 1))[0]
        use = rng.choice(list(USES)) if state == "finished" else "run"
        restore(root, states[state])
        there = sorted(p for p in root.rglob("*") if p.is_file() and p.stat().st_size and "raw" not in p.parts)
        file = rng.choice(there)
        name, how = str(file.relative_to(root)), damage(file, rng)
        fault, found = judge(root, use_project(root, use), said[use], use, whole, name)
        if fault:
            restore(folder / f"fault-flips-{number}", root)
        trials.add("flips", number, f"{kind_of(name, state)}:{name}, {how}, {use}", found, fault)


def interrupted(folder: Path, whole: Whole) -> Path:
    """A project whose run was killed in a phase of dedup, with work records, sketches and staged shards."""
    root = folder / "interrupted"
    for delay in (0.3 + 0.02 * n for n in range(200)):
        fresh(root, whole)
        kill_once(root, "kill -9 group", delay * whole.seconds / 4)
        if len(list(root.glob("data/d/*/*/.work/*/*"))) > 2:
            return root
    sys.exit("no run could be killed while it worked")


def restore(root: Path, kept: Path) -> None:
    """Make a project what another one is."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(kept, root)


def damage(file: Path, rng: random.Random) -> str:
    """Flip a bit of a file, or cut it; says which."""
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data))
    if rng.random() < 0.2:
        file.write_bytes(data[:at])
        return f"cut to {at} bytes"
    bit = rng.randrange(8)
    data[at] ^= 1 << bit
    with file.open("r+b") as f:
        f.write(data)
    return f"bit {bit} of byte {at} of {len(data)}"


def use_project(root: Path, use: str) -> Ended:
    """Something that reads the files of a project."""
    if use == "later stages":
        for stage in ("language", "dedup", "filter", "tokenize", "pack"):
            (root / f"manifests/d/{stage}.json").unlink(missing_ok=True)
            shutil.rmtree(root / f"data/d/{stage}", ignore_errors=True)
    return call(root, *USES[use].split())


def judge(root: Path, run: Ended, expected: Ended, use: str, whole: Whole, name: str) -> tuple[str, str]:
    """(what is wrong, what happened) after a damaged project was used."""
    if run.riddle:
        return run.riddle, "riddle"
    if run.code:
        return ("" if len(run.out.strip()) > 20 else "no message"), "refused"
    if use in ("run", "later stages"):
        found = results(root)
        copies = [n for n in whole.files if "/history/" in n or n.endswith("recipe.toml")]
        wrong = differences({n: d for n, d in found.items() if n not in copies and "/history/" not in n},
                            {n: d for n, d in whole.files.items() if n not in copies})  # fmt: skip
        if wrong and name.endswith("recipe.toml"):
            return "", "another recipe"
        if wrong and name in wrong and not call(root, "verify", "manifests/d/pack.json").code:
            return f"exit code 0, and {wrong} differs", "believed"
        if wrong and name not in wrong:
            return f"exit code 0, and {wrong} differs", "believed"
        return "", "up to date, verify refuses" if wrong else "whole"
    same, before = ([line for line in r.out.splitlines() if "B/s" not in line] for r in (run, expected))
    if same != before and "\nSTALE: " in run.out:
        return "", "told"
    if same != before and not name.endswith((".run.json", "recipe.toml")) and use != "against":
        return f"prints {run.out[-300:]!r} and not {expected.out[-300:]!r}", "believed"
    return "", "not touched"


def kind_of(name: str, state: str) -> str:
    """The kind of a file, for the table: where it lies, without names of datasets, keys and parts."""
    if "/.work/" in name:
        return f"{state}, work file"
    folders = [part for part in Path(name).parts[:-1] if part != "d" and len(part) != 16]
    return " ".join([*folders, Path(name).suffix])


# Hostile inputs.


def bases(folder: Path) -> None:
    """Good files of every format, to be broken."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet as pq

    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 60))) + " \u00e9\u4e2d\U0001f600" for _ in range(200)]
    rows = [{"id": f"r{n}", "text": t, "n": n, "x": n / 7, "tags": ["a", t[:5]]} for n, t in enumerate(texts)]
    talks = [{"messages": [{"role": "user", "content": t}, {"role": "assistant", "content": t[::-1]}]} for t in texts]
    lines = "".join(json.dumps(r, ensure_ascii=n % 2 == 0) + "\n" for n, r in enumerate(rows)).encode()
    made = {
        "text.jsonl": lines,
        "talks.jsonl": "".join(json.dumps(t) + "\n" for t in talks).encode(),
        "array.json": json.dumps(rows).encode(),
        "objects.json": "\n".join(json.dumps(r, indent=1) for r in rows).encode(),
        "plain.txt": "\n\n".join(texts).encode(),
        "text.jsonl.gz": gzip.compress(lines) + gzip.compress(lines),
        "text.jsonl.bz2": bz2.compress(lines),
        "text.jsonl.xz": lzma.compress(lines),
        "text.jsonl.zst": pa.compress(lines, "zstd", asbytes=True),
    }
    for name, data in made.items():
        (folder / name).write_bytes(data)
    with pa.CompressedOutputStream(str(folder / "text.jsonl.lz4"), "lz4") as out:
        out.write(lines)
    table, nested = pa.Table.from_pylist(rows), pa.Table.from_pylist(talks)
    pa.csv.write_csv(table.drop_columns(["tags"]), folder / "table.csv")
    for codec in ("none", "snappy", "zstd", "gzip"):
        pq.write_table(table, folder / f"{codec}.parquet", compression=codec, row_group_size=70)
    pq.write_table(nested, folder / "nested.parquet", data_page_version="2.0", use_dictionary=False)
    for name, some, new in (("plain.arrow", table, pa.ipc.new_file), ("nested.arrows", nested, pa.ipc.new_stream)):
        with pa.OSFile(str(folder / name), "wb") as file, new(file, some.schema) as writer:
            writer.write_table(some, max_chunksize=60)
    pyarrow.feather.write_feather(table, str(folder / "lz4.feather"), compression="lz4")


def broken(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """A file with some damage: flipped bits, large numbers, pieces that are cut out, put in, repeated or foreign."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        # near an end as often as anywhere: headers and footers are there
        near = min(len(made), 300)
        at = rng.choice((rng.randrange(len(made) + 1), rng.randrange(near + 1), len(made) - rng.randrange(near + 1)))
        size, begin = rng.randint(1, 400), rng.randrange(len(other))
        number = rng.choice((0, 1, 0x7F, 0xFF, 0x7FFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1))
        flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in made[at : at + 1])
        made[at : at + rng.choice((0, 1, 8, size, len(made)))] = rng.choice(
            (flipped, number.to_bytes(8, "little"), b"", rng.randbytes(size), made[at : at + size] * 9,
             other[begin : begin + size])
        )  # fmt: skip
    return bytes(made)


AT_ONCE = 40
"""Inputs that one child reads."""


def inputs(folder: Path, trials: Trials, count: int, seed: int) -> None:
    """Break files and ingest them. A child that dies is replaced; its last input is the culprit."""
    base, log = folder / "bases", folder / "inputs.log"
    if not base.is_dir():
        base.mkdir()
        made = ended(fork(lambda: bases(base) or 0, base, log), log, time.monotonic())
        if made.code:
            sys.exit(made.out)
    number = trials.next_number("inputs")
    while number < count:
        until = min(number + AT_ONCE, count)
        begin = time.monotonic()
        run = ended(fork(ingests(base, folder, seed, number, until), folder, log), log, begin)
        said = [json.loads(line) for line in run.out.splitlines() if line.startswith('{"number"')]
        for trial in said:
            if trial["outcome"] != "begins":
                trials.add("inputs", trial["number"], trial["what"], trial["outcome"], trial["fault"])
        number = trials.next_number("inputs")
        if number < until:
            last = said[-1] if said else {"number": number, "what": "start"}
            fault = f"the process ended with {run.code}: {run.out[-500:]}"
            trials.add("inputs", number, last["what"], "crash" if run.code != -1000 else "hangs", fault)
            number += 1


def ingests(base: Path, folder: Path, seed: int, begin: int, end: int) -> Callable[[], int]:
    """The inputs of a range of numbers as work for a child, which prints a line before and after each."""

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        names = sorted(p.name for p in base.iterdir())
        for number in range(begin, end):
            rng = random.Random(f"inputs {seed} {number}")
            name, other = rng.choice(names), rng.choice(names)
            file = folder / "input" / name
            shutil.rmtree(file.parent, ignore_errors=True)
            file.parent.mkdir()
            data = broken((base / name).read_bytes(), (base / other).read_bytes(), rng)
            file.write_bytes(data)
            trial = {"number": number, "what": name, "outcome": "begins", "fault": ""}
            print(json.dumps(trial), flush=True)
            trial["outcome"], trial["fault"] = ingest(file, data, whole=number % 25 == 0)
            print(json.dumps(trial), flush=True)
        return 0

    return work


def ingest(file: Path, data: bytes, *, whole: bool) -> tuple[str, str]:
    """(what happened, what is wrong) when a file is read; `whole`: by the command, into shards and a manifest."""
    from datakit.engine.executors import Local, Progress
    from datakit.engine.runner import Run, run_stage
    from datakit.engine.store import OutputLayout
    from datakit.errors import DatakitError
    from datakit.read.planning import plan, read_unit, units
    from datakit.read.stage import Ingest, IngestConfig

    rows = bad = 0
    try:
        if whole:
            layout = OutputLayout(file.parent, "d", file.parent / "out", "ingest")
            run = Run(layout=layout, executor=Local(1), progress=Progress())
            made = run_stage(run, Ingest().read_from([str(file)])).manifest.ledger.rows
            rows, bad = made.kept, made.quarantined
        else:
            planned = plan([str(file)], IngestConfig())
            for unit in units(planned):
                for batch in read_unit(unit, planned):
                    rows, bad = rows + batch.rows.num_rows, bad + batch.quarantined.num_rows
    except DatakitError as e:
        return "refused", "" if file.name in str(e) else f"the message does not name the file: {e}"
    except Exception:
        return "riddle", traceback.format_exc()[-1500:]
    if file.suffix == ".jsonl" and data.lstrip()[:1] != b"[":
        lines = sum(1 for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip(b" \t\r"))
        if rows + bad != lines and planned_as_lines(file):
            return "lost", f"{lines} lines, {rows} rows and {bad} quarantined"
    return "read" if not bad else "read, some quarantined", ""


def planned_as_lines(file: Path) -> bool:
    """Whether a file is read as JSON lines (a broken one may be taken for something else)."""
    from datakit.read.planning import plan
    from datakit.read.stage import IngestConfig

    (found,) = plan([str(file)], IngestConfig()).files
    return found.format == "jsonl" and not found.compression


# The command.


PARTS = {"inputs": inputs, "flips": flips, "faults": faults, "kills": kills}


def main() -> int:
    """Run the campaign, print its table; 1 if something was lost, believed or a riddle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", help="PART or PART=TRIALS; all by default")
    parser.add_argument("--short", action="store_true", help="fewer trials of each part")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    usual = SHORT if asked.short else COUNTS
    parts = {name: int(count or usual[name]) for name, _, count in (word.partition("=") for word in asked.parts)}
    asked.folder.mkdir(parents=True, exist_ok=True)
    trials = Trials(asked.folder)
    for module in pkgutil.walk_packages(datakit.__path__, "datakit."):  # children start with all of it
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    for part, count in (parts or {part: usual[part] for part in PARTS}).items():
        PARTS[part](asked.folder.resolve(), trials, count, asked.seed)
    if "LD_PRELOAD" not in os.environ:
        print(trials.table())
    return int(any(t["fault"] for t in trials.done))


if __name__ == "__main__":
    sys.exit(main())
