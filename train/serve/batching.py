"""Generation by continuous batching: one token of each answer in every step (Orca: Yu et al., 2022).

An answer waits for a slot of the key/value cache. Prompts are read one after another, some tokens between two steps of
the answers under way, so a long prompt delays nobody for long. What a prompt shares with the beginning of a slot is
copied from there, not computed again. A step has as many rows as there are answers under way: a lone answer costs one
row. Sums of floats depend on the number of rows, so an answer may change in its last bits with what else is served.

`Engine` does the work, `stream` runs it to the end, `Batcher` runs it in a thread with a queue.

Shapes: S slots, C positions of a slot, T new positions, N rows (answers), H query heads, K key/value heads, R = H/K,
E head width, D hidden, V vocabulary.
"""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from datakit.config import option
from datakit.errors import ConfigError, UsageError
from datakit.pack.chat import ChatTokenizer, RenderError
from train.attention import Attend, Scores, attend_by_mask, sees
from train.config import LOG
from train.model import CausalLM
from train.serve.answer_parts import start_of

PROMPT_TOKENS = 256
"""Tokens of prompts between two steps: more bring first tokens sooner, and let answers under way wait longer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleConfig:
    """Sampling of the next token, and the length limit."""

    max_new_tokens: int = option(128, "maximum number of tokens to generate")
    temperature: float = option(0.0, "0: always the most likely token")
    top_k: int = option(0, "sample from this many most likely tokens; 0: from all")
    top_p: float = option(1.0, "sample from the most likely tokens with this total probability")
    min_p: float = option(0.0, "drop tokens below this share of the highest probability")
    repetition_penalty: float = option(1.0, "above 1: tokens of the prompt and the answer become less likely")
    seed: int = option(0, "random seed of the sampling")

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.max_new_tokens < 1 or self.top_k < 0:
            raise ConfigError("temperature and top_k must not be negative, max_new_tokens at least 1")
        if not 0 < self.top_p <= 1 or not 0 <= self.min_p <= 1 or self.repetition_penalty <= 0:
            raise ConfigError("top_p must lie in 0..1 (0 excluded), min_p in 0..1, repetition_penalty above 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling(SampleConfig):
    """How one answer is sampled and where it ends, with what OpenAI's API adds."""

    stop_ids: frozenset[int] = frozenset()
    presence_penalty: float = 0.0
    """Subtracted once from the logits of tokens that the answer contains."""
    frequency_penalty: float = 0.0
    """Subtracted for each time that the answer contains the token."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int = -1
    """Report the log-probability of each token, and those of this many most likely ones; -1: none."""

    def edit(self, prompt: Sequence[int], answer: Sequence[int], scores_V: Tensor) -> None:
        """Put penalties (of repetition: CTRL, Keskar et al., 2019) and biases on logits to sample from, in place."""
        if self.repetition_penalty != 1:
            seen = torch.tensor(sorted({*prompt, *answer}), device=scores_V.device)
            kept = scores_V[seen]
            scores_V[seen] = torch.where(kept > 0, kept / self.repetition_penalty, kept * self.repetition_penalty)
        if self.presence_penalty or self.frequency_penalty:
            for token, count in Counter(answer).items():
                scores_V[token] -= self.presence_penalty + count * self.frequency_penalty
        for token, bias in self.logit_bias.items():
            scores_V[token] += bias


def filtered(logits_NV: Tensor, configs: Sequence[SampleConfig]) -> Tensor:
    """Minus infinity for tokens that a row's top-k, top-p or min-p drops; the most likely one always stays."""
    vocabulary = logits_NV.shape[-1]

    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, device=logits_NV.device, dtype=logits_NV.dtype)[:, None]

    if any(c.top_k or c.top_p < 1 for c in configs):
        last = column([min(c.top_k or vocabulary, vocabulary) - 1 for c in configs]).long()
        ranked_NV, ids_NV = logits_NV.sort(dim=-1, descending=True, stable=True)
        ranked_NV = ranked_NV.masked_fill(ranked_NV < ranked_NV.gather(1, last), -math.inf)
        shares_NV = ranked_NV.softmax(-1)  # nucleus sampling: Holtzman et al., 2020
        outside_NV = shares_NV.cumsum(-1) - shares_NV >= column([c.top_p if c.top_p < 1 else 2.0 for c in configs])
        logits_NV = torch.empty_like(logits_NV).scatter(1, ids_NV, ranked_NV.masked_fill(outside_NV, -math.inf))
    if any(c.min_p for c in configs):  # Nguyen et al., 2024
        floor_N1 = logits_NV.max(-1, keepdim=True).values + column([c.min_p for c in configs]).log()
        logits_NV = logits_NV.masked_fill(logits_NV < floor_N1, -math.inf)
    return logits_NV


def drawn(logits_NV: Tensor, generators: Sequence[torch.Generator]) -> list[int]:
    """A token of each row's distribution, by one number from the row's own generator.

    The number is looked up in the cumulative distribution on the device, so only the chosen tokens come to the host.
    """
    numbers = torch.cat([torch.rand(1, generator=g, dtype=torch.float64) for g in generators]).to(logits_NV.device)
    cumulative_NV = logits_NV.double().softmax(-1).cumsum(-1)
    wanted_N1 = numbers[:, None] * cumulative_NV[:, -1:]
    return torch.searchsorted(cumulative_NV, wanted_N1, right=True).clamp_(max=logits_NV.shape[-1] - 1)[:, 0].tolist()


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token, or the end of an answer."""

    id: int
    """-1: the answer ended without another token."""
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    """The most likely tokens with their log-probabilities, before temperature and penalties."""
    finish: Literal["stop", "length", "timeout", "cancelled", "error"] | None = None
    message: str = ""
    """What went wrong, with `finish` error."""


@dataclass(eq=False, slots=True)
class Slot:
    """A place in the cache."""

    index: int
    ids: list[int] = field(default_factory=list)
    """The tokens whose keys and values lie at the beginning of the slot; they stay when its answer has ended."""
    last_used: float = 0.0


@dataclass(eq=False, slots=True)
class Job:
    """One answer to generate."""

    prompt: list[int]
    sampling: Sampling
    deadline: float = math.inf
    """Time of `time.monotonic()` at which the answer ends unfinished."""
    receive: Callable[[Token], None] = lambda token: None
    """Called with each token, in the thread that makes it."""
    reused: int = 0
    """Positions of the prompt that were copied."""
    answer: list[int] = field(default_factory=list)
    """The tokens so far, with the stop token at the end."""
    generator: torch.Generator = field(default_factory=torch.Generator)
    slot: Slot | None = None
    cancelled: bool = False
    """Set to end the answer before its next token."""

    def __post_init__(self) -> None:
        self.generator.manual_seed(self.sampling.seed % 2**63)


class SlotCache:
    """Keys and values of all slots, and the attention that reads them."""

    def __init__(self, model: CausalLM, slots: int, context: int) -> None:
        c, self.device = model.config, next(model.parameters()).device
        shape, kind = (c.num_layers, 2, slots, c.num_kv_heads, context, c.head_dim), self.device.type
        half = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        self.kv = torch.zeros(shape, dtype=half or model.model.embed_tokens.weight.dtype, device=self.device)
        """Keys and values, (layers, 2, S, K, C, E); on CPU no page of zeros takes memory before it is written."""

    def copy(self, source: Slot, target: Slot, length: int) -> None:
        """Copy the first positions of a slot."""
        target.ids = source.ids[:length]
        if source is not target:
            self.kv[:, :, target.index, :, :length] = self.kv[:, :, source.index, :, :length]

    def attention(self, slots: Sequence[Slot], new: int) -> Attend:
        """Attention of `new` positions at the end of each slot; a row of the batch is a slot.

        Slots have different lengths, so each is attended by itself. On a GPU that would be many small kernels: there
        single positions are attended together, under a mask.
        """
        if new == 1 and len(slots) > 1 and self.device.type != "cpu":
            return self.together(slots)
        at_C = torch.arange(max(len(s.ids) for s in slots) + new, device=self.device)

        def attend(q_NTHE: Tensor, k_NTKE: Tensor, v_NTKE: Tensor, scores: Scores) -> Tensor:
            kv, out = self.kv[scores.layer], list[Tensor]()
            for row, slot in enumerate(slots):
                begin, end = len(slot.ids), len(slot.ids) + new
                kv[0, slot.index, :, begin:end] = k_NTKE[row].transpose(0, 1)
                kv[1, slot.index, :, begin:end] = v_NTKE[row].transpose(0, 1)
                first = max(0, begin + 1 - scores.window) if scores.window else 0
                k, v = kv[:, slot.index, None, :, first:end]
                if new == 1:  # query heads of one key/value head as positions: no copies of keys, and no mask
                    q_1KRE = q_NTHE[row].view(1, k.shape[1], -1, k.shape[-1])
                    out.append(attend_by_mask(q_1KRE, k, v, None).reshape(1, *q_NTHE.shape[1:]))
                else:
                    mask_TC = sees(at_C[begin:end], at_C[first:end], scores.window)
                    q_1HTE = q_NTHE[row, None].transpose(1, 2)
                    out.append(attend_by_mask(q_1HTE, k, v, mask_TC).transpose(1, 2))
            return torch.cat(out) if len(out) > 1 else out[0]

        return attend

    def together(self, slots: Sequence[Slot]) -> Attend:
        """Attention of one position at the end of each slot, in one call for all."""
        slot_N = torch.tensor([s.index for s in slots], device=self.device)
        at_N = torch.tensor([len(s.ids) for s in slots], device=self.device)
        at_C = torch.arange(max(len(s.ids) for s in slots) + 1, device=self.device)

        def attend(q_N1HE: Tensor, k_N1KE: Tensor, v_N1KE: Tensor, scores: Scores) -> Tensor:
            kv = self.kv[scores.layer]
            for side, new_N1KE in enumerate((k_N1KE, v_N1KE)):
                kv[side].transpose(1, 2)[slot_N, at_N] = new_N1KE[:, 0]
            k, v = kv[:, :, :, : len(at_C)][:, slot_N]
            q_NKRE = q_N1HE.view(len(slots), k.shape[1], -1, k.shape[-1])
            seen_N11C = sees(at_N[:, None], at_C, scores.window)[:, None]
            return attend_by_mask(q_NKRE, k, v, seen_N11C).reshape(q_N1HE.shape)

        return attend


class Engine:
    """The model with its slots: put answers into `waiting`, then call `turn` until none is left."""

    def __init__(self, model: CausalLM, slots: int = 16, context: int = 0) -> None:
        """`context` is the longest prompt and answer together, by default and at most the model's own."""
        self.context = min(context or model.config.max_positions, model.config.max_positions)
        if slots < 1 or self.context < 2:
            raise ConfigError(f"expected at least 1 slot and 2 positions, found {slots} and {context}")
        self.model, self.device = model, next(model.parameters()).device
        self.cache = SlotCache(model, slots, self.context)
        self.slots = [Slot(i) for i in range(slots)]
        self.free = list(self.slots)
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        """Answers with a slot; the prompt of the last one may still be read."""
        self.prompt_tokens = self.reused_tokens = self.generated_tokens = self.steps = 0

    @property
    def busy(self) -> bool:
        """Whether an answer waits or is under way."""
        return bool(self.waiting or self.running)

    @torch.inference_mode()
    def turn(self) -> None:
        """Read prompts, then add a token to each answer; an answer receives them, the last with its `finish`."""
        now = time.monotonic()
        for job in (*self.waiting, *self.running):
            if job.cancelled or now >= job.deadline:
                self._end(job, Token(-1, finish="cancelled" if job.cancelled else "timeout"))
        room = PROMPT_TOKENS
        while room and (first := self._unread()):
            assert first.slot is not None
            ids = first.prompt[len(first.slot.ids) :][:room]
            room -= len(ids)
            logits_1V = self._logits([first], [ids])
            if len(first.slot.ids) == len(first.prompt):
                self.prompt_tokens += len(first.prompt)
                self._choose([first], logits_1V)
        if jobs := [job for job in self.running if job.answer]:
            self._choose(jobs, self._logits(jobs, [job.answer[-1:] for job in jobs]))
            self.steps += 1

    def fail(self, message: str, waiting: bool) -> None:
        """End all answers after an error, or with `waiting` also those that have not begun."""
        for job in (*self.running, *(self.waiting if waiting else ())):
            self._end(job, Token(-1, finish="error", message=message))
        for slot in self.slots:
            slot.ids = []  # what they hold may be half written

    def _end(self, job: Job, last: Token) -> None:
        """Tell the end of an answer, and free its slot."""
        if job.slot is None:
            self.waiting.remove(job)
        else:
            self.running.remove(job)
            job.slot.last_used = time.monotonic()
            self.free.append(job.slot)
            job.slot = None
        job.receive(last)

    def _unread(self) -> Job | None:
        """The answer whose prompt is read next; only when it is read does the next one get a slot, and may copy it."""
        if self.running and not self.running[-1].answer:
            return self.running[-1]
        if not (self.waiting and self.free):
            return None
        job = self.waiting.popleft()
        # the last token of a prompt is always read: its logits are needed
        job.reused, best = max(((_same(s.ids, job.prompt[:-1]), s) for s in self.slots), key=lambda pair: pair[0])
        job.slot = min(self.free, key=lambda slot: slot.last_used)
        self.free.remove(job.slot)
        self.reused_tokens += job.reused
        self.running.append(job)  # before what may fail: `fail` ends what is running
        self.cache.copy(best, job.slot, job.reused)
        return job

    def _logits(self, jobs: Sequence[Job], new: Sequence[Sequence[int]]) -> Tensor:
        """The logits after new tokens of each answer, as many of each, (N, V); the tokens are in the cache then."""
        slots = [job.slot for job in jobs if job.slot is not None]
        ids_NT = torch.tensor(new, device=self.device)
        begin_N1 = torch.tensor([[len(slot.ids)] for slot in slots], device=self.device)
        at_NT = begin_N1 + torch.arange(ids_NT.shape[1], device=self.device)
        hidden_NTD = self.model(ids_NT, at_NT, self.cache.attention(slots, ids_NT.shape[1]))
        for slot, ids in zip(slots, new, strict=True):
            slot.ids += ids
        return self.model.lm_head(hidden_NTD[:, -1]).float()

    def _choose(self, jobs: Sequence[Job], logits_NV: Tensor) -> None:
        """Append a token to every answer, and end those that are complete."""
        asked = [job.sampling for job in jobs]
        scores_NV = logits_NV.clone()  # the logits are reported as the model gave them
        for job, scores_V in zip(jobs, scores_NV, strict=True):
            job.sampling.edit(job.prompt, job.answer, scores_V)
        chosen = scores_NV.argmax(-1).tolist()
        if rows := [row for row, one in enumerate(asked) if one.temperature > 0]:
            heat_N1 = torch.tensor([[asked[row].temperature] for row in rows], device=self.device)
            kept_NV = filtered(scores_NV[rows] / heat_N1, [asked[row] for row in rows])
            for row, token_id in zip(rows, drawn(kept_NV, [jobs[row].generator for row in rows]), strict=True):
                chosen[row] = token_id
        for job, token_id, logits_V in zip(jobs, chosen, logits_NV, strict=True):
            job.answer.append(token_id)
            self.generated_tokens += 1
            token = _with_logprobs(token_id, job.sampling.logprobs, logits_V)
            full = len(job.prompt) + len(job.answer) >= self.context
            if token_id in job.sampling.stop_ids:
                self._end(job, replace(token, finish="stop"))
            elif full or len(job.answer) >= job.sampling.max_new_tokens:
                self._end(job, replace(token, finish="length"))
            else:
                job.receive(token)


def _same(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences share at their beginning."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _with_logprobs(token_id: int, logprobs: int, logits_V: Tensor) -> Token:
    """The token, with what `Sampling.logprobs` asks for."""
    if logprobs < 0:
        return Token(token_id)
    logprobs_V = logits_V.log_softmax(-1).clamp(min=-9999.0)  # JSON has no minus infinity
    top = logprobs_V.topk(min(logprobs, len(logprobs_V)))
    ranked = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return Token(token_id, float(logprobs_V[token_id]), tuple(ranked))


class TextStream:
    """Decode a stream of tokens to text: only complete characters, and no part of a stop string.

    Only the last few tokens are decoded again for each token, so the work grows with the length of the answer, not
    with its square. The token before the new ones is decoded with them, because some tokenizers write the first token
    of a text without its space.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: Sequence[str] = ()) -> None:
        self.decode, self.stop, self.ended = decode, tuple(s for s in stop if s), False
        self._window: list[int] = []
        """The last tokens: those whose text is known, then those that are an incomplete character so far."""
        self._told, self._known, self._held = 0, "", ""

    def add(self, token: int) -> str:
        """The new text that no later token can change; sets `ended` at the first stop string."""
        self._window.append(token)
        text = self.decode(self._window)
        if text.endswith("\ufffd"):  # an incomplete character decodes to this
            return ""
        new = text[len(self._known) :]
        del self._window[: self._told]
        self._told, self._known = len(self._window), self.decode(self._window)
        return self._release(new)

    def end(self) -> str:
        """The rest of the text at the end of the stream."""
        rest = "" if self.ended else self._release(self.decode(self._window)[len(self._known) :])
        rest, self._held = rest + self._held, ""
        return rest

    def _release(self, new: str) -> str:
        """Add text; returns what no stop string can include any more."""
        text = self._held + new
        if found := [at for at in (text.find(s) for s in self.stop) if at >= 0]:
            self.ended, self._held = True, ""
            return text[: min(found)]
        sure = len(text) - max((start_of(s, text) for s in self.stop), default=0)
        self._held = text[sure:]
        return text[:sure]


def prompt_ids(
    tokenizer: ChatTokenizer, said: str | Sequence[dict[str, Any]], plain: bool, context: int, where: str,
    system: str = "", tools: Any = None,
) -> list[int]:  # fmt: skip
    """The ids of a prompt: a text or a conversation, through the chat template unless `plain`; `where` is for errors.

    `system` is a message before the conversation, if that has none; `tools` are those that the template declares.

    Raises:
        UsageError: an empty prompt, no room for an answer in `context`, messages for a plain-text model, or turns that
            the template refuses.
    """
    if plain and not isinstance(said, str):
        raise UsageError(f"{where}: messages need a chat template, and this is a plain-text model")
    turns = [{"role": "user", "content": said}] if isinstance(said, str) else said
    if system and not (turns and turns[0].get("role") == "system"):
        turns = [{"role": "system", "content": system}, *turns]
    try:
        ids = tokenizer.encode_document(str(said)) if plain else tokenizer.encode_prompt(turns, tools)
    except RenderError as e:
        raise UsageError(f"{where}: the chat template refuses this conversation: {e}") from None
    if not 0 < len(ids) < context:
        raise UsageError(f"{where} has {len(ids)} tokens; 1 to {context - 1} leave room for an answer")
    return ids


def stop_ids_of(model: CausalLM, tokenizer: ChatTokenizer) -> frozenset[int]:
    """The tokens that end an answer: those of the tokenizer and its template, and of generation_config.json."""
    eos = model.config.generation.get("eos_token_id") or []
    return frozenset((*tokenizer.stop_ids(), *([eos] if isinstance(eos, int) else eos)))


def jobs_of(prompts: Sequence[Sequence[int]], stop_ids: frozenset[int], config: SampleConfig) -> list[Job]:
    """An answer to each prompt; each has its own random generator, seeded by the seed and its index."""
    whole = Sampling(**asdict(config), stop_ids=stop_ids)
    return [Job(list(prompt), replace(whole, seed=config.seed + i)) for i, prompt in enumerate(prompts)]


def stream(model: CausalLM, jobs: Sequence[Job], slots: int = 0) -> Iterator[tuple[Job, Token]]:
    """Yield the tokens of some answers as they come, `slots` answers at a time; 0: all together.

    Prompts are as `prompt_ids` makes them: not empty, with room for an answer.
    """
    if not jobs:
        return
    longest = max(len(job.prompt) + job.sampling.max_new_tokens for job in jobs)
    engine = Engine(model, min(slots or len(jobs), len(jobs)), longest)
    engine.waiting.extend(jobs)
    made = deque[tuple[Job, Token]]()
    for job in jobs:
        job.receive = partial(lambda job, token: made.append((job, token)), job)
    while engine.busy:
        engine.turn()
        while made:
            yield made.popleft()


class QueueFullError(Exception):
    """Too many requests wait already."""


class Batcher:
    """An engine, the thread in which it runs and in which answers receive their tokens, and the queue before it."""

    def __init__(self, model: CausalLM, slots: int = 16, context: int = 0, queue: int = 64) -> None:
        self.engine, self.queue = Engine(model, slots, context), queue
        self._arrived: list[Job] = []
        self._wake, self._closed = threading.Condition(), False
        self.thread = threading.Thread(target=self._run, name="generate", daemon=True)
        self.thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the answers of one request.

        Raises:
            QueueFullError: they do not fit into the queue beside those that wait; none is queued.
        """
        with self._wake:
            if self.waiting + len(jobs) > max(len(self.engine.free) + self.queue, 1):
                raise QueueFullError(f"{self.waiting} requests wait already")
            self._arrived.extend(jobs)
            self._wake.notify()

    def close(self) -> None:
        """End every answer and stop the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self.thread.join()

    @property
    def waiting(self) -> int:
        """Answers that wait for a slot."""
        return len(self._arrived) + len(self.engine.waiting)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._arrived or self.engine.busy)
                self.engine.waiting.extend(self._arrived)
                self._arrived.clear()
            if self._closed:
                break
            try:
                self.engine.turn()
            except Exception as e:  # a server goes on; the requests under way are told
                LOG.exception("a step failed")
                self.engine.fail(f"{type(e).__name__}: {e}", waiting=False)
        self.engine.fail("the server stops", waiting=True)
