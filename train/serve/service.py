"""The model behind the server: prompts from requests, answers as they grow, limits, metrics."""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from datakit.config import option
from datakit.errors import ConfigError
from datakit.pack.chat import ChatTokenizer, RenderError
from train.engine.device import usable_device
from train.generate import load
from train.model.decoder import CausalLM
from train.model.sample import SampleConfig, TextStream
from train.serve.answers import Form, Part, Parts, form_of, hidden_ids, thinks_first
from train.serve.batching import Batcher, Job, QueueFullError, Sampling, Token
from train.serve.requests import ChatRequest, Generation, TokenizeRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig:
    """Model, address and limits."""

    checkpoint: str = option("out/run", "checkpoint, Hugging Face folder, or a run's folder for its newest checkpoint")
    adapter: str = option("", "folder of LoRA adapters for the model of --checkpoint")
    tokenizer: str = option("", "tokenizer.json or its folder, if it is not in the folder of the model")
    name: str = option("", "name of the model in the API; default: the name of its folder")
    host: str = option("127.0.0.1", "address to listen on; 0.0.0.0: every network of the machine, with --api-key")
    port: int = option(8000, "port to listen on; 0: any free one")
    api_key: str = option("", "key that clients must send; better in the environment, as DATAKIT_API_KEY")
    allow_origin: tuple[str, ...] = option((), "web pages of these origins may use the API (CORS); default: none")
    slots: int = option(16, "answers that are generated at the same time")
    queue: int = option(64, "requests that may wait for a slot; more are answered with 429")
    context: int = option(0, "longest prompt and answer together, in tokens; 0: what the model allows, at most 8192")
    max_tokens: int = option(0, "longest answer; 0: what the context allows")
    timeout_s: float = option(600.0, "longest time for one request, waiting included")
    max_body_mb: float = option(4.0, "largest body of a request")
    max_clients: int = option(512, "open connections; more are answered with 503")
    dtype: Literal["fp32", "bf16"] = option("fp32", "dtype of the weights; bf16 halves their memory")
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")

    def __post_init__(self) -> None:
        if min(self.slots, self.max_clients) < 1 or min(self.queue, self.context, self.max_tokens, self.threads) < 0:
            raise ConfigError("slots and max_clients must be at least 1; queue, context, max_tokens, threads 0 or more")
        if self.timeout_s <= 0 or self.max_body_mb <= 0 or not 0 <= self.port < 65536:
            raise ConfigError("timeout_s and max_body_mb must be above 0, port 0 to 65535")


class ApiError(Exception):
    """An error in OpenAI's shape."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.headers = {429: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}.get(status, {})

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the error."""
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(self.status, "invalid_request_error")
        kind = kind if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        """The HTTP response; ASCII, since a message may quote anything."""
        return Response(json.dumps(self.body).encode(), self.status, self.headers, media_type="application/json")


class Metrics:
    """What Prometheus reads."""

    def __init__(self, batcher: Batcher) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("requests", "Requests by path and status", ("path", "status"), registry=self.registry)
        seconds = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
        self.first_token = Histogram(
            "first_token_seconds", "Time to the first token", buckets=seconds, registry=self.registry
        )
        self.whole = Histogram("request_seconds", "Time of a generation", buckets=seconds, registry=self.registry)
        read: dict[str, tuple[str, Callable[[], float]]] = {
            "slots_busy": ("Answers under way", lambda: batcher.busy),
            "requests_waiting": ("Answers that wait for a slot", lambda: len(batcher.waiting)),
            "prompt_tokens": ("Tokens of prompts", lambda: batcher.prompt_tokens),
            "prompt_tokens_reused": ("Tokens of prompts taken from another slot", lambda: batcher.reused_tokens),
            "generated_tokens": ("Generated tokens", lambda: batcher.generated_tokens),
            "steps": ("Steps of all answers together", lambda: batcher.steps),
        }
        for name, (about, value) in read.items():
            Gauge(name, about, registry=self.registry).set_function(value)


@dataclass(eq=False, slots=True)
class Choice:
    """One answer of a request, taken apart."""

    index: int
    job: Job
    text: TextStream
    parts: Parts
    tokens: int = 0
    calls: int = 0
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What one answer gained."""

    choice: Choice
    parts: list[Part]
    tokens: list[Token]
    finish: str | None


class Service:
    """The model with its tokenizer, the batcher, and what all requests share."""

    def __init__(
        self, config: ServeConfig, model: CausalLM, tokenizer: ChatTokenizer, plain: bool, folder: Path
    ) -> None:
        self.config, self.tokenizer, self.plain = config, tokenizer, plain
        self.name = config.name or folder.resolve().name
        self.created = int(time.time())
        self.form: Form = form_of(tokenizer.template_source)
        defaults = _generation_config(folder)
        eos = defaults.get("eos_token_id", [])
        self.stop_ids = frozenset(tokenizer.stop_ids()) | frozenset([eos] if isinstance(eos, int) else eos)
        self.hidden = hidden_ids(tokenizer.special, sorted(self.stop_ids))
        self.defaults = defaults if defaults.get("do_sample", True) else {"temperature": 0.0}
        context = config.context or min(model.config.max_positions, 8192)
        self.batcher = Batcher(model, self._deliver, config.slots, context, config.queue)
        self.metrics = Metrics(self.batcher)
        self.loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def of(cls, config: ServeConfig) -> "Service":
        """Load the model.

        Raises:
            DatakitError: no model there, or it does not fit its tokenizer or adapters.
        """
        device = usable_device(config.device)
        if config.threads:
            torch.set_num_threads(config.threads)
        folder, base = Path(config.checkpoint), None
        if config.adapter:
            folder, base = Path(config.adapter), folder
        model, tokenizer, state = load(folder, Path(config.tokenizer or config.checkpoint), base)
        dtype = torch.bfloat16 if config.dtype == "bf16" else torch.float32
        return cls(config, model.to(device, dtype), tokenizer, state.get("task") == "pretrain", folder)

    def _deliver(self, events: list[tuple[Job, Token]]) -> None:
        if self.loop is not None and not self.loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop ended in between
                self.loop.call_soon_threadsafe(_receive, events)

    def check_model(self, name: str) -> None:
        """Refuse a model that is not served."""
        if name and name != self.name:
            raise ApiError(
                404,
                f"the model {name!r} does not exist; this server has {self.name!r}",
                param="model",
                code="model_not_found",
            )

    def prompt_of(self, body: ChatRequest | TokenizeRequest) -> list[int]:
        """The ids of a conversation.

        Raises:
            ApiError: the template refuses it.
        """
        if self.plain:
            raise ApiError(
                400,
                f"{self.name} was trained on plain text and has no chat turns; use /v1/completions",
                param="messages",
            )
        tools = [tool.model_dump(exclude_none=True) for tool in body.tools or ()] or None
        if isinstance(body, ChatRequest) and body.tool_choice == "none":
            tools = None
        try:
            messages = [message.plain() for message in body.messages or ()]
            return self.tokenizer.encode_prompt(messages, tools)
        except RenderError as e:
            raise ApiError(400, f"the chat template refuses this conversation: {e}", param="messages") from None
        except UnicodeError:
            raise ApiError(
                400, "a text holds half of a surrogate pair, which is no character", param="messages"
            ) from None

    def encoded(self, text: str) -> list[int]:
        """The ids of a plain text."""
        try:
            return self.tokenizer.encode_text(text)
        except UnicodeError:
            raise ApiError(
                400, "the text holds half of a surrogate pair, which is no character", param="prompt"
            ) from None

    def choices(
        self, prompts: Sequence[list[int]], body: Generation, logprobs: int, tools: bool = False, beginning: str = ""
    ) -> list[Choice]:
        """The answers to generate, `n` for each prompt.

        Raises:
            ApiError: a prompt is empty, too long, or has ids that the model does not have.
        """
        found: list[Choice] = []
        seed = secrets.randbits(62) if body.seed is None else body.seed
        deadline = time.monotonic() + self.config.timeout_s
        for prompt in prompts:
            self._check_prompt(prompt)
            sampling = self._sampling(body, len(prompt), logprobs)
            thinking = not self.plain and thinks_first(self.tokenizer.decode(prompt[-16:]))
            for _ in range(body.n or 1):
                own = replace(sampling, config=replace(sampling.config, seed=seed + len(found)))
                choice = Choice(
                    len(found),
                    Job(prompt, own, deadline, lambda token: None),
                    TextStream(self._decode, body.stops),
                    Parts(self.form if tools else None, thinking),
                )
                choice.parts.add(beginning)
                found.append(choice)
        return found

    def _check_prompt(self, prompt: Sequence[int]) -> None:
        most = self.batcher.context - 1
        if not 0 < len(prompt) <= most:
            code = "context_length_exceeded" if prompt else None
            raise ApiError(
                400,
                f"the prompt has {len(prompt)} tokens; expected 1 to {most}, so that an answer fits into the context of {most + 1}",
                param="messages",
                code=code,
            )
        vocabulary = self.batcher.model.config.vocab_size
        if max(prompt) >= vocabulary:
            raise ApiError(
                400, f"the prompt has the token {max(prompt)}; expected ids below {vocabulary}", param="prompt"
            )

    def _sampling(self, body: Generation, length: int, logprobs: int) -> Sampling:
        wanted = (
            getattr(body, "max_completion_tokens", None)
            or body.max_tokens
            or self.config.max_tokens
            or self.batcher.context
        )
        limits = [wanted, self.batcher.context - length, self.config.max_tokens or wanted]

        def value(name: str, otherwise: float) -> Any:
            given = getattr(body, name)
            return given if given is not None else self.defaults.get(name, otherwise)

        vocabulary = self.batcher.model.config.vocab_size
        bias = {int(token): amount for token, amount in (body.logit_bias or {}).items()}
        if unknown := [token for token in bias if token >= vocabulary]:
            raise ApiError(400, f"logit_bias: expected ids below {vocabulary}, found {unknown[0]}", param="logit_bias")
        return Sampling(
            config=SampleConfig(
                max_new_tokens=min(limits),
                temperature=value("temperature", 1.0),
                top_k=max(value("top_k", 0), 0),
                top_p=value("top_p", 1.0),
                min_p=value("min_p", 0.0),
                repetition_penalty=value("repetition_penalty", 1.0),
            ),
            presence_penalty=body.presence_penalty or 0.0,
            frequency_penalty=body.frequency_penalty or 0.0,
            logit_bias=bias,
            logprobs=logprobs,
            stop_ids=frozenset(body.stop_token_ids or ()) | (frozenset() if body.ignore_eos else self.stop_ids),
        )

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([i for i in ids if i not in self.hidden])

    async def run(self, choices: Sequence[Choice], only_call: bool = False) -> AsyncIterator[Delta]:
        """Generate the answers and yield what they gain, until all are complete.

        The first delta is empty: it says that the request is queued.
        With `only_call`, an answer ends with its first tool call. Whoever stops early frees the slots.

        Raises:
            ApiError: the queue is full, the time is over, or generating failed.
        """
        tokens: asyncio.Queue[tuple[Choice, Token]] = asyncio.Queue()
        for choice in choices:
            choice.job.receive = lambda token, choice=choice: tokens.put_nowait((choice, token))  # type: ignore[misc]
        jobs, begun, first = [choice.job for choice in choices], time.monotonic(), True
        try:
            self.batcher.submit(jobs)
        except QueueFullError as e:
            raise ApiError(429, f"{e}; try again later", code="queue_full") from None
        try:
            yield Delta(choices[0], [], [], None)
            while any(choice.finish is None for choice in choices):
                arrived = [await tokens.get()]
                while not tokens.empty():
                    arrived.append(tokens.get_nowait())
                if first:
                    self.metrics.first_token.observe(time.monotonic() - begun)
                    first = False
                for choice in choices:
                    gained = [token for c, token in arrived if c is choice]
                    if gained and choice.finish is None:
                        yield self._delta(choice, gained, only_call)
        finally:
            self.batcher.cancel(jobs)
            self.metrics.whole.observe(time.monotonic() - begun)

    def _delta(self, choice: Choice, gained: Sequence[Token], only_call: bool) -> Delta:
        parts, tokens = [], []
        for token in gained:
            if token.finish == "timeout":
                raise ApiError(504, f"the answer took longer than {self.config.timeout_s:g} s", code="timeout")
            if token.id is None:
                raise ApiError(500, token.message or "generation ended early", code=token.finish)
            choice.tokens += 1
            tokens.append(token)
            if not (token.finish == "stop" and token.id in choice.job.sampling.stop_ids):
                parts += choice.parts.add(choice.text.add(token.id))
            if choice.text.ended or token.finish:
                choice.finish = "length" if token.finish == "length" and not choice.text.ended else "stop"
                parts += choice.parts.add(choice.text.end()) + choice.parts.end()
            if only_call and (at := next((i for i, p in enumerate(parts) if p.kind == "call"), None)) is not None:
                parts, choice.finish = parts[: at + 1], "stop"
            if choice.finish:
                break
        called = choice.calls + sum(part.kind == "call" for part in parts)
        if choice.finish == "stop" and called:
            choice.finish = "tool_calls"
        return Delta(choice, _joined(parts), tokens, choice.finish)

    def logprob(self, token_id: int, logprob: float) -> dict[str, Any]:
        """A token with its log-probability, as OpenAI gives it."""
        text = self.tokenizer.decode([token_id])
        whole = "\ufffd" not in text
        return {"token": text, "logprob": logprob, "bytes": list(text.encode()) if whole else None}


def _receive(events: list[tuple[Job, Token]]) -> None:
    for job, token in events:
        job.receive(token)


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Neighbouring pieces of text as one."""
    found: list[Part] = []
    for part in parts:
        if found and part.kind == found[-1].kind != "call":
            found[-1] = Part(part.kind, found[-1].text + part.text)
        else:
            found.append(part)
    return found


def _generation_config(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in found.items() if v is not None}
