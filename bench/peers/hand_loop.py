"""What a skilled user writes by hand: a transformers model on packed rows, dense block mask, labels only at the head, fused AdamW.

    python bench/peers/hand_loop.py HF_FOLDER PACKED_PREFIX [--steps 12] [--rows 8] [--threads 2] [--dtype bf16] [--compile]

Reads bin2d by its documented table (rows of `seq_len + 1` ids, segment boundaries, label positions) and prints a JSON
line a step: loss, label tokens per second of the wall and of processor time. `bench/train.py --of "ours,by hand in fp32"` runs
it beside our own loop.
"""  # noqa: E501

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("prefix")
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--rows", type=int, default=8)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--dtype", choices=["fp32", "bf16"], default="bf16")
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()
torch.set_num_threads(args.threads)
meta = json.loads(Path(args.prefix + ".meta.json").read_text())
stride = meta["stride"]
ids = np.memmap(args.prefix + ".ids2d.bin", meta["ids"]["dtype"], "r").reshape(-1, stride)


def ragged(name: str) -> list[np.ndarray]:
    values, index = np.fromfile(f"{args.prefix}.{name}.bin", np.int32), np.fromfile(f"{args.prefix}.{name}.idx", "<i8")
    return [values[o : o + n].astype(np.int64) for o, n in index.reshape(-1, 2)]


segments, labels = ragged("seg"), ragged("lbl")
model = AutoModelForCausalLM.from_pretrained(args.model, attn_implementation="sdpa", dtype=torch.float32).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01, fused=True)
forward = torch.compile(model.model) if args.compile else model.model
causal = torch.ones(stride - 1, stride - 1, dtype=torch.bool).tril()
for step in range(args.steps):
    began, cpu = time.perf_counter(), time.process_time()
    rows = range(step * args.rows, (step + 1) * args.rows)
    batch = torch.from_numpy(ids[rows.start : rows.stop].astype(np.int64))
    document = torch.full((args.rows, stride), -1)
    position = torch.zeros(args.rows, stride, dtype=torch.long)
    wanted = torch.zeros(args.rows, stride - 1, dtype=torch.bool)
    for i, row in enumerate(rows):
        for k, (a, b) in enumerate(zip(segments[row][:-1], segments[row][1:], strict=True)):
            document[i, a:b], position[i, a:b] = k, torch.arange(b - a)
        wanted[i, torch.from_numpy(labels[row])] = True
    document = document[:, :-1]
    mask = (document[:, :, None] == document[:, None, :]) & causal
    with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
        hidden = forward(
            input_ids=batch[:, :-1], attention_mask=mask[:, None], position_ids=position[:, :-1], use_cache=False
        )
        logits = model.lm_head(hidden.last_hidden_state[wanted])
    loss = F.cross_entropy(logits.float(), batch[:, 1:][wanted])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    count, spent, used = int(wanted.sum()), time.perf_counter() - began, time.process_time() - cpu
    said = {"loss": round(loss.item(), 6), "label_tok_s": count / spent, "labels": count, "cpu_s": used}
    print(json.dumps(said), flush=True)
