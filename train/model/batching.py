"""Continuous batching: many answers are generated together, one token of each in every step (Orca: Yu et al., 2022).

A request waits for a slot of the key/value cache. Its prompt is processed in chunks, a few between two steps of the
answers that are already under way, so a long prompt delays nobody for long. Chunks that another slot has processed
for the same beginning of a prompt are copied, not computed again.

In fp32 on CPU an answer does not depend on what else is served. Every matrix product has one of two shapes, CHUNK
positions of one prompt or a tile of TILE answers, both padded, and attention is computed for each request by itself.
So no sum is added up in another order because of other requests. Models with experts are the exception: the number of
tokens of an expert depends on the others.

Shapes: S slots, C positions of a slot, T positions of a chunk, N answers in a step, H query heads, K key/value heads,
R = H/K query heads per key/value head, E head width, V vocabulary.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from datakit.errors import ConfigError
from train.model.attention import Scores, attend_by_mask, sees
from train.model.decoder import CausalLM
from train.model.sample import SampleConfig, drawn, filtered

CHUNK = 64
TILE = 16
"""Positions of a prompt, and answers, that share a matrix product; below 16 a CPU gains little."""
CHUNKS_PER_STEP = 4
"""Chunks of prompts between two steps: more bring first tokens sooner, and let answers under way wait longer."""

Finish = Literal["stop", "length", "timeout", "cancelled", "error"]
log = logging.getLogger(__name__)


class QueueFullError(Exception):
    """Too many requests wait already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How one answer is sampled, and where it ends."""

    config: SampleConfig
    """Length, temperature, filters and repetition penalty; its seed is the answer's own."""
    presence_penalty: float = 0.0
    """Subtracted once from the logits of tokens that the answer contains."""
    frequency_penalty: float = 0.0
    """Subtracted for each time that the answer contains the token."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int = -1
    """Report the log-probability of each token, and those of this many most likely ones; -1: none."""
    stop_ids: frozenset[int] = frozenset()

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken, and nothing but it is asked for."""
        return self.config.temperature == 0 and self._unchanged

    @property
    def plain(self) -> bool:
        """Whether the token is drawn from the model's own distribution, and nothing but it is asked for."""
        return self.config.temperature > 0 and self._unchanged

    @property
    def _unchanged(self) -> bool:
        changed = self.presence_penalty or self.frequency_penalty or self.logit_bias
        return not changed and self.config.repetition_penalty == 1 and self.logprobs < 0


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token, or the end of an answer."""

    id: int
    """-1: the answer ended without another token."""
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    """The most likely tokens with their log-probabilities, before temperature and penalties."""
    finish: Finish | None = None
    message: str = ""
    """What went wrong, with `finish` error."""


@dataclass(eq=False, slots=True)
class Job:
    """One answer to generate."""

    prompt: list[int]
    sampling: Sampling
    deadline: float
    """Time of `time.monotonic()` at which the answer ends unfinished."""
    receive: Callable[[Token], None]
    """Called in the thread of the batcher's `deliver`."""
    reused: int = 0
    """Positions of the prompt that another request had processed."""
    answer: list[int] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    generator: torch.Generator = field(default_factory=torch.Generator)
    slot: "Slot | None" = None
    cancelled: bool = False


@dataclass(eq=False, slots=True)
class Slot:
    """A place in the cache."""

    index: int
    chunks: list[int] = field(default_factory=list)
    """The tokens of whole chunks of a prompt whose keys and values lie at the beginning of the slot."""
    length: int = 0
    """Positions in use."""
    last_used: float = 0.0


class SlotCache:
    """Keys and values of all slots, and the attention that reads them."""

    def __init__(self, model: CausalLM, slots: int, context: int) -> None:
        c, weight = model.config, next(model.parameters())
        shape = (c.num_layers, 2, slots, c.num_kv_heads, context, c.head_dim)
        # zeros: on CPU no page takes memory before it is written
        self.kv = torch.zeros(shape, dtype=weight.dtype, device=weight.device)

    @property
    def one_by_one(self) -> bool:
        """Whether each request's attention is computed alone; on a GPU that would be many small kernels."""
        return self.kv.device.type == "cpu"

    def copy(self, source: Slot, target: Slot, length: int) -> None:
        """Copy the first positions of a slot."""
        self.kv[:, :, target.index, :, :length] = self.kv[:, :, source.index, :, :length]

    def prompt_attention(self, slot: Slot, new: int) -> Callable[[Tensor, Tensor, Tensor, Scores], Tensor]:
        """Attention of `new` positions of one prompt, at the end of its slot; the rest of the chunk is padding."""
        begin, end = slot.length, slot.length + new
        key_C = torch.arange(end, device=self.kv.device)

        def attend(q_1THE: Tensor, k_1TKE: Tensor, v_1TKE: Tensor, scores: Scores) -> Tensor:
            layer = scores.layer
            for side, new_1TKE in enumerate((k_1TKE, v_1TKE)):
                self.kv[layer, side, slot.index, :, begin:end] = new_1TKE[0, :new].transpose(0, 1)
            k, v = self.kv[layer, :, slot.index, :, :end].unsqueeze(1)
            groups = q_1THE.shape[2] // k.shape[1]
            q_1KQE = _split(q_1THE[:, :new], 2, groups).transpose(1, 2).flatten(2, 3)
            mask_QC = sees(key_C[begin:], key_C, scores.window).repeat_interleave(groups, 0)
            out_1KQE = attend_by_mask(q_1KQE, k, v, mask_QC, scores.softcap)
            out_1THE = torch.zeros_like(q_1THE)
            out_1THE[:, :new] = _split(out_1KQE, 2, groups).transpose(1, 2).flatten(2, 3)
            return out_1THE

        return attend

    def step_attention(self, slots: Sequence[Slot]) -> Callable[[Tensor, Tensor, Tensor, Scores], Tensor]:
        """Attention of one new position of each slot; rows beyond them are padding."""
        rows = len(slots)
        slot_N = torch.tensor([s.index for s in slots], device=self.kv.device)
        at_N = torch.tensor([s.length for s in slots], device=self.kv.device)
        longest = max(s.length for s in slots) + 1
        key_C = torch.arange(longest, device=self.kv.device)

        def attend(q_N1HE: Tensor, k_N1KE: Tensor, v_N1KE: Tensor, scores: Scores) -> Tensor:
            layer = scores.layer
            for side, new_N1KE in enumerate((k_N1KE, v_N1KE)):
                self.kv[layer, side].transpose(1, 2)[slot_N, at_N] = new_N1KE[:rows, 0]
            out_N1HE = torch.zeros_like(q_N1HE)
            q_NKRE = _split(q_N1HE[:rows, 0], 1, q_N1HE.shape[2] // k_N1KE.shape[2])
            if not self.one_by_one:
                k, v = self.kv[layer, :, :, :, :longest][:, slot_N]
                seen_N11C = sees(at_N[:, None], key_C, scores.window)[:, None]
                out = attend_by_mask(q_NKRE, k, v, seen_N11C, scores.softcap)
                out_N1HE[:rows, 0] = out.flatten(1, 2)
                return out_N1HE
            for row, slot in enumerate(slots):  # each by itself: see the top of this file
                first = max(0, slot.length + 1 - scores.window) if scores.window else 0
                k, v = self.kv[layer, :, slot.index : slot.index + 1, :, first : slot.length + 1]
                out_N1HE[row, 0] = attend_by_mask(q_NKRE[row : row + 1], k, v, None, scores.softcap)[0].flatten(0, 1)
            return out_N1HE

        return attend


def _split(x: Tensor, dim: int, groups: int) -> Tensor:
    """A dimension as two, the second of `groups`."""
    found: Tensor = x.unflatten(dim, (-1, groups))  # type: ignore[no-untyped-call]
    return found


class Batcher:
    """The model, its slots, and the thread that generates.

    `deliver` gets the tokens of a step, all at once and in the generating thread; it calls `Job.receive` wherever the
    program wants it.
    """

    def __init__(
        self,
        model: CausalLM,
        deliver: Callable[[list[tuple[Job, Token]]], None],
        slots: int = 16,
        context: int = 0,
        queue: int = 64,
    ) -> None:
        rope = model.config.rope  # longrope's frequencies depend on the length of the prompt, which a chunk cannot tell
        most = rope.original_max_position_embeddings if rope.rope_type == "longrope" else model.config.max_positions
        self.context = min(context or most, most)
        if slots < 1 or self.context < 2 or queue < 0:
            raise ConfigError(
                f"expected at least 1 slot, 2 positions and a queue of 0 or more, found {slots}, {context}, {queue}"
            )
        self.model, self.deliver, self.queue = model, deliver, queue
        self.device = next(model.parameters()).device
        self.cache = SlotCache(model, slots, self.context)
        self.slots = [Slot(i) for i in range(slots)]
        self.waiting: deque[Job] = deque()
        self.active: list[Job] = []
        self.prompt_tokens = self.reused_tokens = self.generated_tokens = self.steps = 0
        self._free = list(self.slots)
        self._in_prompt: Job | None = None
        self._events: list[tuple[Job, Token]] = []
        self._wake, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="generate", daemon=True)
        self._thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the answers of one request.

        Raises:
            QueueFullError: they do not fit into the queue beside those that wait; none is queued.
        """
        with self._wake:
            if len(self.waiting) + len(jobs) > max(len(self._free) + self.queue, 1):
                raise QueueFullError(f"{len(self.waiting)} requests wait already")
            for job in jobs:
                job.generator.manual_seed(job.sampling.config.seed % 2**63)
            self.waiting.extend(jobs)
            self._wake.notify()

    def cancel(self, jobs: Sequence[Job]) -> None:
        """End answers that nobody waits for any more; their slots become free before the next step."""
        with self._wake:
            for job in jobs:
                job.cancelled = True
            self._wake.notify()

    def close(self) -> None:
        """End every answer and stop the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread still generates."""
        return self._thread.is_alive()

    @property
    def busy(self) -> int:
        """Slots in use."""
        return len(self.slots) - len(self._free)

    def _run(self) -> None:
        with torch.inference_mode():
            while True:
                with self._wake:
                    while not (self._closed or self.waiting or self.active or self._in_prompt):
                        self._wake.wait()
                    if self._closed:
                        break
                    self._drop_ended()
                try:
                    for _ in range(CHUNKS_PER_STEP):
                        self._prompt_chunk()
                    if self.active:
                        self._step()
                except Exception as e:  # a server goes on; the requests under way are told
                    log.exception("a step failed")
                    self._fail(f"{type(e).__name__}: {e}")
                self._send()
        self._fail("the server stops")
        self._send()

    def _send(self) -> None:
        if self._events:
            self.deliver(self._events)
            self._events = []

    def _fail(self, message: str) -> None:
        with self._wake:
            jobs = [
                *self.active,
                *([self._in_prompt] if self._in_prompt else []),
                *(self.waiting if self._closed else ()),
            ]
            for job in jobs:
                self._end(job, Token(-1, finish="error", message=message))
            if self._closed:
                self.waiting.clear()
            for slot in self.slots:
                slot.chunks, slot.length = [], 0  # what they hold may be half written

    def _drop_ended(self) -> None:
        """End what was cancelled or takes too long, wherever it is."""
        now = time.monotonic()
        for job in [*self.waiting, *self.active, *([self._in_prompt] if self._in_prompt else [])]:
            if job.cancelled or now >= job.deadline:
                if job.slot is None:
                    self.waiting.remove(job)
                self._end(job, Token(-1, finish="cancelled" if job.cancelled else "timeout"))

    def _end(self, job: Job, last: Token) -> None:
        """Tell the end of an answer and free its slot; the caller holds the lock or is the only one to change it."""
        if job is self._in_prompt:
            self._in_prompt = None
        elif job in self.active:
            self.active.remove(job)
        if job.slot is not None:
            job.slot.last_used = time.monotonic()
            self._free.append(job.slot)
            job.slot = None
        self._events.append((job, last))

    def _prompt_chunk(self) -> None:
        """Process the next chunk of the first prompt that waits."""
        with self._wake:
            if self._in_prompt is None and self.waiting and self._free:
                self._in_prompt = self.waiting.popleft()
                self._in_prompt.slot = self._slot_for(self._in_prompt)
            job = self._in_prompt
        if job is None:
            return
        slot = job.slot
        assert slot is not None
        ids = job.prompt[slot.length : slot.length + CHUNK]
        ids_1T = torch.zeros(1, CHUNK, dtype=torch.int64)
        ids_1T[0, : len(ids)] = torch.tensor(ids)
        at_1T = slot.length + torch.arange(CHUNK)[None].clamp(max=len(ids) - 1)
        attend = self.cache.prompt_attention(slot, len(ids))
        hidden_1TD = self.model(ids_1T.to(self.device), at_1T.to(self.device), attend)
        slot.length += len(ids)
        if len(ids) == CHUNK:
            slot.chunks += ids
        if slot.length < len(job.prompt):
            return
        with self._wake:
            self._in_prompt = None
            self.active.append(job)
        self.prompt_tokens += len(job.prompt)
        last_ND = hidden_1TD[0, len(ids) - 1].expand(TILE, -1).contiguous()
        self._choose([job], self.model.lm_head(last_ND)[:1].float())

    def _slot_for(self, job: Job) -> Slot:
        """A free slot, with as many of the prompt's first chunks as any slot holds."""
        most = (len(job.prompt) - 1) // CHUNK * CHUNK  # the last position is always computed: its logits are needed

        def shared(slot: Slot) -> int:
            ends = range(CHUNK, min(most, len(slot.chunks)) + 1, CHUNK)
            same = (end for end in reversed(ends) if slot.chunks[:end] == job.prompt[:end])
            return next(same, 0)

        length = {slot.index: shared(slot) for slot in self.slots}
        best = max(self.slots, key=lambda s: (length[s.index], s in self._free))
        # a slot that begins the same needs no copy; else the one that was not used for longest loses what it holds
        slot = best if best in self._free and length[best.index] else min(self._free, key=lambda s: s.last_used)
        self._free.remove(slot)
        job.reused = length[best.index]
        self.reused_tokens += job.reused
        if slot is not best and job.reused:
            self.cache.copy(best, slot, job.reused)
        slot.chunks, slot.length = job.prompt[: job.reused], job.reused
        return slot

    def _step(self) -> None:
        """One more token of every answer, a tile of answers at a time."""
        under_way = list(self.active)  # answers that end leave the list
        for begin in range(0, len(under_way), TILE):
            jobs = under_way[begin : begin + TILE]
            slots = [job.slot for job in jobs if job.slot is not None]
            ids_N1, at_N1 = torch.zeros(2, TILE, 1, dtype=torch.int64)
            for row, (job, slot) in enumerate(zip(jobs, slots, strict=True)):
                ids_N1[row, 0], at_N1[row, 0] = job.answer[-1], slot.length
            attend = self.cache.step_attention(slots)
            hidden_N1D = self.model(ids_N1.to(self.device), at_N1.to(self.device), attend)
            for slot in slots:
                slot.length += 1
            self._choose(jobs, self.model.lm_head(hidden_N1D[:, 0])[: len(jobs)].float())
        self.steps += 1

    def _choose(self, jobs: Sequence[Job], logits_NV: Tensor) -> None:
        """Append a token to every answer, and end those that are complete."""
        chosen = logits_NV.argmax(-1).tolist()
        alike: dict[SampleConfig, list[int]] = {}
        for row, job in enumerate(jobs):
            if job.sampling.plain:
                alike.setdefault(replace(job.sampling.config, seed=0), []).append(row)
        for config, rows in alike.items():  # one draw for all answers with the same settings
            kept_NV = filtered(logits_NV[rows] / config.temperature, config)
            for row, token_id in zip(rows, drawn(kept_NV, [jobs[row].generator for row in rows]), strict=True):
                chosen[row] = token_id
        for job, best, logits_V in zip(list(jobs), chosen, logits_NV, strict=True):
            token = Token(best) if job.sampling.greedy or job.sampling.plain else _sampled(job, logits_V)
            job.answer.append(token.id)
            self.generated_tokens += 1
            full = len(job.prompt) + len(job.answer) >= self.context
            if token.id in job.sampling.stop_ids:
                finish: Finish | None = "stop"
            else:
                finish = "length" if full or len(job.answer) >= job.sampling.config.max_new_tokens else None
            if finish is None:
                self._events.append((job, token))
                continue
            with self._wake:
                self._end(job, Token(token.id, token.logprob, token.top, finish))


def _sampled(job: Job, logits_V: Tensor) -> Token:
    """The next token of one answer, with its log-probability where it is asked for."""
    sampling, config = job.sampling, job.sampling.config
    scores_V = logits_V.clone()
    if config.repetition_penalty != 1:  # CTRL: Keskar et al., 2019
        seen = torch.tensor(sorted({*job.prompt, *job.answer}), device=scores_V.device)
        found = scores_V[seen]
        scores_V[seen] = torch.where(found > 0, found / config.repetition_penalty, found * config.repetition_penalty)
    if sampling.presence_penalty or sampling.frequency_penalty:
        job.counts.update(job.answer[sum(job.counts.values()) :])
        for token, count in job.counts.items():
            scores_V[token] -= sampling.presence_penalty + count * sampling.frequency_penalty
    for token, bias in sampling.logit_bias.items():
        scores_V[token] += bias
    if config.temperature == 0:
        chosen = int(scores_V.argmax())
    else:
        (chosen,) = drawn(filtered(scores_V[None] / config.temperature, config), [job.generator])
    if sampling.logprobs < 0:
        return Token(chosen)
    logprobs_V = logits_V.log_softmax(-1)
    top = logprobs_V.topk(min(sampling.logprobs, len(logprobs_V)))
    ranked = tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))
    return Token(chosen, max(float(logprobs_V[chosen]), -9999.0), tuple((i, max(p, -9999.0)) for i, p in ranked))
