"""The server beside itself and beside `transformers serve`: tokens a second and time to the first token.

    python -m bench.serve [--model FOLDER] [--peer] [--clients 16] [--requests 48] [--new 64]
    python -m bench.serve --lone 1                          # a lone client beside transformers' generate, on one thread

Without --model, a 26m model with random weights is made, with the tokenizer of --tokenizer. Every request has another
prompt of 20 to 200 words and is streamed: first some of them one after another, then all from as many clients at once.
With --peer, `transformers serve` answers the same requests on the same folder, with and without continuous batching;
it needs the packages of its own extra. With --lone THREADS both generate greedily in this process, in turns, from one
prompt of 40 tokens; the ids must be equal.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
import torch
from measure import free_port, processor_seconds

from datakit.pack.chat import ChatTokenizer
from train import hf, weights
from train.generate import ready
from train.model import PRESETS, CausalLM
from train.serve.batching import SampleConfig, jobs_of, stream

WORDS = [
    "the", "cat", "sat", "on", "a", "mat", "and", "saw", "how", "many", "large", "green", "birds", "flew", "over",
    "old", "houses", "near", "some", "water",
]  # fmt: skip


def made_model(folder: Path, tokenizer_folder: Path) -> Path:
    torch.manual_seed(0)
    model = CausalLM(PRESETS["26m"])
    model.init_weights(torch.Generator().manual_seed(0))
    tokenizer = ChatTokenizer.load(tokenizer_folder)
    files = [tokenizer_folder / name for name in ("tokenizer.json", "tokenizer_config.json")]
    ids = {"eos_token_id": tokenizer.eos_id, "pad_token_id": tokenizer.pad_id, "bos_token_id": tokenizer.bos_id}
    hf.write_model(folder, model, files, ids)
    return folder


def prompts(count: int) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(20, 200))) for _ in range(count)]


async def answers(url: str, model: str, asked: list[str], clients: int, new: int) -> tuple[float, int, list[float]]:
    """Seconds for all, tokens, and seconds to the first token of each."""
    gate, firsts, tokens = asyncio.Semaphore(clients), [], 0

    async with httpx2.AsyncClient(timeout=None) as client:

        async def ask(text: str) -> None:
            nonlocal tokens
            body = {
                "model": model, "messages": [{"role": "user", "content": text}], "max_tokens": new, "temperature": 0,
                "stream": True, "stream_options": {"include_usage": True},
            }  # fmt: skip
            async with gate:
                begun, first, pieces, used = time.perf_counter(), 0.0, 0, 0
                async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
                    assert response.status_code == 200, await response.aread()
                    async for line in response.aiter_lines():
                        if not line.startswith("data: {"):
                            continue
                        event = json.loads(line[6:])
                        used = (event.get("usage") or {}).get("completion_tokens", used)
                        if any((c.get("delta") or {}).get("content") for c in event.get("choices") or ()):
                            first = first or time.perf_counter() - begun
                            pieces += 1
                firsts.append(first)
                tokens += used or pieces

        begun = time.perf_counter()
        await asyncio.gather(*map(ask, asked))
        return time.perf_counter() - begun, tokens, sorted(firsts)


def run(command: list[str], port: int) -> subprocess.Popen:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True)
    for _ in range(600):
        try:
            httpx2.get(f"http://127.0.0.1:{port}/health", timeout=5)
            return process
        except httpx2.HTTPError:
            time.sleep(0.2)
    raise SystemExit(f"{command[0]} did not start")


def lone(folder: Path, threads: int, new: int) -> None:
    """Print tokens a second of both, best and median of turns, and the median ratio of neighbouring turns."""
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    ours = ready(weights.read_model(folder).eval(), torch.device("cpu"), half=False)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = torch.randint(3, ours.config.vocab_size, (1, 40), generator=torch.Generator().manual_seed(1))

    def own() -> list[int]:
        (job,) = jobs_of(prompt.tolist(), frozenset(), SampleConfig(max_new_tokens=new))
        for _ in stream(ours, [job]):
            pass
        return job.answer

    def peer() -> list[int]:
        asked = {"max_new_tokens": new, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        return theirs.generate(prompt, **asked)[0, prompt.shape[1] :].tolist()

    assert own() == peer(), "the greedy ids differ"
    rates: dict[str, list[float]] = {"datakit": [], "transformers": []}
    for _ in range(12):
        for name, run in (("datakit", own), ("transformers", peer)):
            begun = time.perf_counter()
            run()
            rates[name].append(new / (time.perf_counter() - begun))
    for name, found in rates.items():
        print(f"{name}: best {max(found):.1f} tok/s, median {statistics.median(found):.1f}")
    ratios = [a / b for a, b in zip(*rates.values(), strict=True)]
    print(f"ratio of medians of turns on {threads} threads: {statistics.median(ratios):.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--tokenizer", type=Path, default=Path("../shared/tokenizers/minimind"))
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--lone", type=int, default=0, metavar="THREADS")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="serve-"))
    model = asked.model or made_model(folder, asked.tokenizer)
    if asked.lone:
        lone(model, asked.lone, asked.new)
        return 0
    port = free_port()
    ours = [sys.executable, "-m", "train.serve", "--model", str(model), "--port", str(port)]
    ours += ["--slots", str(asked.clients)]
    servers = {"datakit": (ours, port, model.resolve().name)}
    if asked.peer:
        for label, flags in (("transformers", []), ("transformers, continuous", ["--continuous-batching"])):
            peer_port = free_port()
            command = [str(Path(sys.executable).with_name("transformers")), "serve", "--port", str(peer_port)]
            servers[label] = ([*command, "--host", "127.0.0.1", *flags], peer_port, str(model))
    texts = prompts(asked.requests)
    print("| server | clients | tokens | s | tokens/s | tokens/CPU s | first token p50 | p99 |\n" + "| --- " * 8 + "|")
    for name, (command, at, model_name) in servers.items():
        process = run(command, at)
        try:
            url = f"http://127.0.0.1:{at}"
            asyncio.run(answers(url, model_name, prompts(2)[:1], 1, 4))  # the first one loads and compiles
            for clients in (1, asked.clients):
                part = texts[: max(4, asked.requests // 6)] if clients == 1 else texts
                best = None
                for _ in range(2):
                    before = processor_seconds(process.pid)
                    seconds, tokens, firsts = asyncio.run(answers(url, model_name, part, clients, asked.new))
                    spent = processor_seconds(process.pid) - before
                    found = (tokens / seconds, seconds, tokens, firsts, tokens / spent)
                    best = max(best, found) if best else found
                rate, seconds, tokens, firsts, per_cpu = best
                p50, p99 = firsts[len(firsts) // 2], firsts[int(len(firsts) * 0.99)]
                numbers = (f"{seconds:.1f}", f"{rate:.1f}", f"{per_cpu:.1f}", f"{p50:.2f} s", f"{p99:.2f} s")
                print("|", " | ".join((name, str(clients), str(tokens), *numbers)), "|", flush=True)
        except (httpx2.HTTPError, AssertionError) as error:
            print(f"| {name} | failed: {str(error)[:200]} |", flush=True)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
