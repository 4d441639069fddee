"""Generation by continuous batching: one token of each answer in every step (Orca: Yu et al., 2022).

An answer waits for a slot of the key/value cache. Its prompt is processed in chunks, a few between two steps of the
answers that are already under way, so a long prompt delays nobody for long. Chunks that another slot has processed
for the same beginning of a prompt are copied, not computed again.

In fp32 on CPU an answer does not depend on the others. Every matrix product has one of two shapes, CHUNK positions of
one prompt or a tile of answers, both padded, and attention is computed for each answer by itself. So no sum is added up
in another order because of other answers. Models with experts are the exception: the number of tokens of an expert
depends on the others.

Shapes: S slots, C positions of a slot, T positions of a chunk, N answers in a step, H query heads, K key/value heads,
R = H/K query heads per key/value head, E head width, V vocabulary.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from datakit.errors import ConfigError, UsageError
from datakit.pack.chat import ChatTokenizer
from train.attention import Scores, attend_by_mask, sees
from train.model import CausalLM
from train.sample import SampleConfig, TextStream, drawn, filtered

CHUNK = 64
TILE = 16
"""Positions of a prompt, and answers, that share a matrix product; below 16 a CPU gains little."""
CHUNKS_PER_STEP = 4
"""Chunks of prompts between two steps: more bring first tokens sooner, and let answers under way wait longer."""

Finish = Literal["stop", "length", "timeout", "cancelled", "error"]


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


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How one answer is sampled, and where it ends. A server extends it with what its requests ask for."""

    config: SampleConfig
    """Length, temperature, filters and repetition penalty; its seed is the answer's own."""
    stop_ids: frozenset[int] = frozenset()

    @property
    def alike(self) -> bool:
        """Whether answers with the same settings may be drawn together, from the model's own logits."""
        return self.config.repetition_penalty == 1

    def scores(self, job: "Job", logits_V: Tensor) -> Tensor:
        """The logits to sample from, (V,), with the repetition penalty (CTRL: Keskar et al., 2019)."""
        scores_V, penalty = logits_V.clone(), self.config.repetition_penalty
        if penalty != 1:
            seen = torch.tensor(sorted({*job.prompt, *job.answer}), device=scores_V.device)
            scores_V[seen] = torch.where(scores_V[seen] > 0, scores_V[seen] / penalty, scores_V[seen] * penalty)
        return scores_V

    def token(self, job: "Job", logits_V: Tensor) -> Token:
        """The next token of one answer."""
        scores_V = self.scores(job, logits_V)
        if self.config.temperature == 0:
            return Token(int(scores_V.argmax()))
        return Token(drawn(filtered(scores_V[None] / self.config.temperature, self.config), [job.generator])[0])


@dataclass(eq=False, slots=True)
class Job:
    """One answer to generate."""

    prompt: list[int]
    sampling: Sampling
    deadline: float = math.inf
    """Time of `time.monotonic()` at which the answer ends unfinished."""
    receive: Callable[[Token], None] | None = None
    """For a server: called with each token."""
    reused: int = 0
    """Positions of the prompt that another answer had processed."""
    answer: list[int] = field(default_factory=list)
    """The tokens so far, with the stop token at the end."""
    generator: torch.Generator = field(default_factory=torch.Generator)
    slot: "Slot | None" = None
    cancelled: bool = False
    """Set to end the answer before its next token."""

    def __post_init__(self) -> None:
        self.generator.manual_seed(self.sampling.config.seed % 2**63)


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
        c, self.device = model.config, next(model.parameters()).device
        self.shape = (c.num_layers, 2, slots, c.num_kv_heads, context, c.head_dim)
        self._kv: Tensor | None = None

    def kv(self, dtype: torch.dtype) -> Tensor:
        """Keys and values, (layers, 2, S, K, C, E), made at the first use in the dtype of the first keys."""
        if self._kv is None:  # zeros: on CPU no page takes memory before it is written
            self._kv = torch.zeros(self.shape, dtype=dtype, device=self.device)
        return self._kv

    @property
    def one_by_one(self) -> bool:
        """Whether each request's attention is computed alone; on a GPU that would be many small kernels."""
        return self.device.type == "cpu"

    def copy(self, source: Slot, target: Slot, length: int) -> None:
        """Copy the first positions of a slot."""
        if self._kv is not None:
            self._kv[:, :, target.index, :, :length] = self._kv[:, :, source.index, :, :length]

    def prompt_attention(self, slot: Slot, new: int) -> Callable[[Tensor, Tensor, Tensor, Scores], Tensor]:
        """Attention of `new` positions of one prompt, at the end of its slot; the rest of the chunk is padding."""
        begin, end = slot.length, slot.length + new
        key_C = torch.arange(end, device=self.device)

        def attend(q_1THE: Tensor, k_1TKE: Tensor, v_1TKE: Tensor, scores: Scores) -> Tensor:
            kv = self.kv(k_1TKE.dtype)[scores.layer]
            for side, new_1TKE in enumerate((k_1TKE, v_1TKE)):
                kv[side, slot.index, :, begin:end] = new_1TKE[0, :new].transpose(0, 1)
            k, v = kv[:, slot.index, :, :end].unsqueeze(1)
            groups = q_1THE.shape[2] // k.shape[1]
            q_1KQE = _split(q_1THE[:, :new], 2, groups).transpose(1, 2).flatten(2, 3)
            mask_QC = sees(key_C[begin:], key_C, scores.window).repeat_interleave(groups, 0)
            out_1KQE = attend_by_mask(q_1KQE, k, v, mask_QC, scores)
            out_1THE = torch.zeros_like(q_1THE)
            out_1THE[:, :new] = _split(out_1KQE, 2, groups).transpose(1, 2).flatten(2, 3)
            return out_1THE

        return attend

    def step_attention(self, slots: Sequence[Slot]) -> Callable[[Tensor, Tensor, Tensor, Scores], Tensor]:
        """Attention of one new position of each slot; rows beyond them are padding."""
        rows = len(slots)
        slot_N = torch.tensor([s.index for s in slots], device=self.device)
        at_N = torch.tensor([s.length for s in slots], device=self.device)
        longest = max(s.length for s in slots) + 1
        key_C = torch.arange(longest, device=self.device)

        def attend(q_N1HE: Tensor, k_N1KE: Tensor, v_N1KE: Tensor, scores: Scores) -> Tensor:
            kv = self.kv(k_N1KE.dtype)[scores.layer]
            for side, new_N1KE in enumerate((k_N1KE, v_N1KE)):
                kv[side].transpose(1, 2)[slot_N, at_N] = new_N1KE[:rows, 0]
            out_N1HE = torch.zeros_like(q_N1HE)
            q_NKRE = _split(q_N1HE[:rows, 0], 1, q_N1HE.shape[2] // k_N1KE.shape[2])
            if not self.one_by_one:
                k, v = kv[:, :, :, :longest][:, slot_N]
                seen_N11C = sees(at_N[:, None], key_C, scores.window)[:, None]
                out = attend_by_mask(q_NKRE, k, v, seen_N11C, scores)
                out_N1HE[:rows, 0] = out.flatten(1, 2)
                return out_N1HE
            for row, slot in enumerate(slots):  # each by itself: see the top of this file
                first = max(0, slot.length + 1 - scores.window) if scores.window else 0
                k, v = kv[:, slot.index : slot.index + 1, :, first : slot.length + 1]
                out_N1HE[row, 0] = attend_by_mask(q_NKRE[row : row + 1], k, v, None, scores)[0].flatten(0, 1)
            return out_N1HE

        return attend


def _split(x: Tensor, dim: int, groups: int) -> Tensor:
    """A dimension as two, the second of `groups`."""
    found: Tensor = x.unflatten(dim, (-1, groups))  # type: ignore[no-untyped-call]
    return found


class Engine:
    """The model with its slots: put answers into `waiting`, then call `turn` until none is left."""

    def __init__(self, model: CausalLM, slots: int = 16, context: int = 0, tile: int = TILE) -> None:
        """`context` is the longest prompt and answer together, by default and at most the model's own.

        `tile` answers share a matrix product; only with one tile for all does an answer not depend on the others.
        """
        self.context = min(context or model.config.context, model.config.context)
        if slots < 1 or self.context < 2:
            raise ConfigError(f"expected at least 1 slot and 2 positions, found {slots} and {context}")
        self.model, self.tile, self.device = model, tile, next(model.parameters()).device
        self.cache = SlotCache(model, slots, self.context)
        self.slots = [Slot(i) for i in range(slots)]
        self.free = list(self.slots)
        self.waiting: deque[Job] = deque()
        self.active: list[Job] = []
        self.prompt_tokens = self.reused_tokens = self.generated_tokens = self.steps = 0
        self._in_prompt: Job | None = None
        self._events: list[tuple[Job, Token]] = []

    @property
    def busy(self) -> bool:
        """Whether an answer waits or is under way."""
        return bool(self.waiting or self.active or self._in_prompt)

    @torch.inference_mode()
    def turn(self) -> list[tuple[Job, Token]]:
        """Some chunks of prompts, and the next token of each answer; returns the tokens, the last with its `finish`."""
        now = time.monotonic()
        for job in self._under_way():
            if job.cancelled or now >= job.deadline:
                self._end(job, Token(-1, finish="cancelled" if job.cancelled else "timeout"))
        for _ in range(CHUNKS_PER_STEP):
            self._prompt_chunk()
        if self.active:
            self._step()
        return self._taken()

    def fail(self, message: str, waiting: bool) -> list[tuple[Job, Token]]:
        """End all answers after an error, or with `waiting` also those that have not begun; returns their ends."""
        for job in self._under_way():
            if waiting or job.slot is not None:
                self._end(job, Token(-1, finish="error", message=message))
        for slot in self.slots:
            slot.chunks, slot.length = [], 0  # what they hold may be half written
        return self._taken()

    def _under_way(self) -> list[Job]:
        return [*self.waiting, *self.active, *([self._in_prompt] if self._in_prompt else [])]

    def _taken(self) -> list[tuple[Job, Token]]:
        events, self._events = self._events, []
        return events

    def _end(self, job: Job, last: Token) -> None:
        """Tell the end of an answer, wherever it is, and free its slot."""
        if job is self._in_prompt:
            self._in_prompt = None
        elif job in self.active:
            self.active.remove(job)
        else:
            self.waiting.remove(job)
        if job.slot is not None:
            job.slot.last_used = time.monotonic()
            self.free.append(job.slot)
            job.slot = None
        self._events.append((job, last))

    def _prompt_chunk(self) -> None:
        """Process the next chunk of the first prompt that waits."""
        if self._in_prompt is None and self.waiting and self.free:
            self.waiting[0].slot = self._slot_for(self.waiting[0])
            self._in_prompt = self.waiting.popleft()
        if (job := self._in_prompt) is None:
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
        self._in_prompt = None
        self.active.append(job)
        self.prompt_tokens += len(job.prompt)
        last_ND = hidden_1TD[0, len(ids) - 1].expand(self.tile, -1).contiguous()
        self._choose([job], self.model.lm_head(last_ND)[:1].float())

    def _slot_for(self, job: Job) -> Slot:
        """A free slot, with as many of the prompt's first chunks as any slot holds."""
        most = (len(job.prompt) - 1) // CHUNK * CHUNK  # the last position is always computed: its logits are needed

        def shared(slot: Slot) -> int:
            ends = range(CHUNK, min(most, len(slot.chunks)) + 1, CHUNK)
            same = (end for end in reversed(ends) if slot.chunks[:end] == job.prompt[:end])
            return next(same, 0)

        length = {slot.index: shared(slot) for slot in self.slots}
        best = max(self.slots, key=lambda s: (length[s.index], s in self.free))
        # a slot that begins the same needs no copy; else the one that was not used for longest loses what it holds
        slot = best if best in self.free and length[best.index] else min(self.free, key=lambda s: s.last_used)
        self.free.remove(slot)
        job.reused = length[best.index]
        self.reused_tokens += job.reused
        if slot is not best and job.reused:
            self.cache.copy(best, slot, job.reused)
        slot.chunks, slot.length = job.prompt[: job.reused], job.reused
        return slot

    def _step(self) -> None:
        """One more token of every answer, a tile of answers at a time."""
        under_way = list(self.active)  # answers that end leave the list
        for begin in range(0, len(under_way), self.tile):
            jobs = under_way[begin : begin + self.tile]
            slots = [job.slot for job in jobs if job.slot is not None]
            ids_N1, at_N1 = torch.zeros(2, self.tile, 1, dtype=torch.int64)
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
            if job.sampling.alike and job.sampling.config.temperature > 0:
                alike.setdefault(replace(job.sampling.config, seed=0), []).append(row)
        for config, rows in alike.items():  # one draw for all answers with the same settings
            kept_NV = filtered(logits_NV[rows] / config.temperature, config)
            for row, token_id in zip(rows, drawn(kept_NV, [jobs[row].generator for row in rows]), strict=True):
                chosen[row] = token_id
        for job, best, logits_V in zip(list(jobs), chosen, logits_NV, strict=True):
            token = Token(best) if job.sampling.alike else job.sampling.token(job, logits_V)
            job.answer.append(token.id)
            self.generated_tokens += 1
            full = len(job.prompt) + len(job.answer) >= self.context
            if token.id in job.sampling.stop_ids:
                finish: Finish | None = "stop"
            else:
                finish = "length" if full or len(job.answer) >= job.sampling.config.max_new_tokens else None
            if finish is None:
                self._events.append((job, token))
            else:
                self._end(job, replace(token, finish=finish))


def prompt_ids(
    tokenizer: ChatTokenizer, said: str | Sequence[dict[str, Any]], plain: bool, context: int, where: str
) -> list[int]:
    """The ids of a prompt: a text or a conversation, through the chat template unless `plain`; `where` is for errors.

    Raises:
        UsageError: an empty prompt, no room for an answer in `context`, or messages for a plain-text model.
    """
    if plain and not isinstance(said, str):
        raise UsageError(f"{where}: messages need a chat template, and this is a plain-text model")
    turns = [{"role": "user", "content": said}] if isinstance(said, str) else said
    ids = tokenizer.encode_document(str(said)) if plain else tokenizer.encode_prompt(turns)
    if not 0 < len(ids) < context:
        raise UsageError(f"{where} has {len(ids)} tokens; 1 to {context - 1} leave room for an answer")
    return ids


def stop_ids_of(model: CausalLM, tokenizer: ChatTokenizer) -> frozenset[int]:
    """The tokens that end an answer: those of the tokenizer and its template, and of generation_config.json."""
    eos = model.config.generation.get("eos_token_id") or []
    return frozenset((*tokenizer.stop_ids(), *([eos] if isinstance(eos, int) else eos)))


def jobs_of(prompts: Sequence[Sequence[int]], stop_ids: frozenset[int], config: SampleConfig) -> list[Job]:
    """An answer to each prompt; each has its own random generator, seeded by the seed and its index."""
    own = (replace(config, seed=config.seed + i) for i in range(len(prompts)))
    return [Job(list(p), Sampling(config=c, stop_ids=stop_ids)) for p, c in zip(prompts, own, strict=True)]


def stream(model: CausalLM, jobs: Sequence[Job], slots: int = 0) -> Iterator[tuple[Job, Token]]:
    """Yield the tokens of some answers as they come, `slots` answers at a time; 0: all together.

    Raises:
        UsageError: a prompt that is empty or leaves no room for an answer.
    """
    if not jobs:
        return
    many = min(slots or len(jobs), len(jobs))
    for job in jobs:
        if not 0 < len(job.prompt) < model.config.context:
            raise UsageError(f"a prompt has {len(job.prompt)} tokens, the model room for {model.config.context - 1}")
    longest = max(len(job.prompt) + job.sampling.config.max_new_tokens for job in jobs)
    engine = Engine(model, many, longest, min(TILE, many))
    engine.waiting.extend(jobs)
    while engine.busy:
        yield from engine.turn()


def stream_text(
    model: CausalLM, tokenizer: ChatTokenizer, prompts: Sequence[Sequence[int]], config: SampleConfig,
    stop: Sequence[str] = (), slots: int = 0,
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """Yield (number of the prompt, piece of its answer); an answer ends before the first of the strings `stop`."""
    jobs = jobs_of(prompts, stop_ids_of(model, tokenizer), config)
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    texts = {job: (i, TextStream(decode, stop)) for i, job in enumerate(jobs)}
    for job, token in stream(model, jobs, slots):
        i, text = texts[job]
        if text.ended:
            continue
        piece = "" if token.id < 0 or token.finish == "stop" else text.add(token.id)
        yield i, piece + (text.end() if token.finish else "")
        job.cancelled = text.ended


def answers(
    model: CausalLM, tokenizer: ChatTokenizer, prompts: Sequence[Sequence[int]], config: SampleConfig,
    stop: Sequence[str] = (), slots: int = 0,
) -> list[str]:  # fmt: skip
    """The whole texts of `stream_text`."""
    found = [""] * len(prompts)
    for i, piece in stream_text(model, tokenizer, prompts, config, stop, slots):
        found[i] += piece
    return found
