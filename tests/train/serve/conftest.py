"""A small model that has learnt a few answers by heart, and a server for it in a process of its own."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from datakit.pack.chat import ChatTokenizer
from tests.train.runs import small_model
from train import hf
from train.attention import Segments, masked_attention

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }} <tool_call></tool_call><|im_end|>\n{% endif %}"
    "{% for m in messages %}"
    "{% if m.role == 'tool' and not m.content %}{{ raise_exception('an empty result') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
CALLS = '{"name": "weather", "arguments": {"city": "Paris"}}', '{"name": "weather", "arguments": {"city": "東京"}}'
ANSWERS = {
    "hello": "Hello 你好 there, how are you today?",
    "think": "<think>\nLet me see.\n</think>\n\nIt is four.",
    "weather": "".join(f"<tool_call>\n{call}\n</tool_call>\n" for call in CALLS),
}
"""What the model says to each user message."""
SONG = "la " * 40
"""What it begins to say to "sing"; it has not learnt to end."""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory, tokenizer_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("served") / "parrot"
    shutil.copytree(tokenizer_folder, folder)
    config = json.loads((folder / "tokenizer_config.json").read_text()) | {"chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = ChatTokenizer.load(folder)
    torch.manual_seed(0)
    model = small_model(vocab_size=tokenizer.vocab_size, hidden_size=64, head_dim=16, intermediate_size=128)
    rows, targets = [], []
    for said, answer in (ANSWERS | {"sing": SONG}).items():
        prompt = tokenizer.encode_prompt([{"role": "user", "content": said}], [TOOL] if said == "weather" else None)
        reply = [*tokenizer.encode_text(answer), *(() if answer == SONG else tokenizer.probe.turn_end)]
        rows.append([*prompt, *reply])
        targets.append([-100] * len(prompt) + reply)
    width = max(map(len, rows))
    ids_BT = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    targets_BT = torch.tensor([t + [-100] * (width - len(t)) for t in targets])
    segments = Segments.of([[0, len(row)] for row in rows], width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    said_BT, learnt = targets_BT[:, 1:], torch.tensor(False)
    for _ in range(600):
        hidden_BTD = model(ids_BT, segments.positions_BT, masked_attention(segments))
        logits_BTV = model.lm_head(hidden_BTD)
        loss = F.cross_entropy(logits_BTV[:, :-1].flatten(0, 1), said_BT.flatten())
        # a small mean hides single wrong tokens, and which ones differs between processors
        surest_BT = logits_BTV[:, :-1].softmax(-1).gather(2, said_BT.clamp(min=0)[..., None])[..., 0]
        if loss < 0.03 and (learnt := surest_BT[said_BT >= 0].min() > 0.8):
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert learnt, f"the model has not learnt its answers: {loss}"
    ids = {"eos_token_id": tokenizer.eos_id, "pad_token_id": tokenizer.pad_id, "bos_token_id": None}
    hf.write_model(folder, model, [], ids, tokenizer.stop_ids())
    return folder


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen

    def metric(self, name: str) -> float:
        return httpx.get(f"{self.url}/health").json()[name]


@pytest.fixture(scope="session")
def server(model_folder: Path) -> Iterator[Server]:
    options = ["--port", "0", "--threads", "1", "--slots", "4", "--queue", "8", "--max-body-mb", "0.2"]
    command = [sys.executable, "-m", "train.serve", "--model", str(model_folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    found = re.search(r"http://\S+?(?=/ )", line)
    assert found, f"the server did not start: {line!r}"
    yield Server(found[0], process)
    process.terminate()
    assert process.wait(20) == -signal.SIGTERM  # after a graceful end, uvicorn passes the signal on
