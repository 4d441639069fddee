"""The model behind the server: prompts from requests, answers as they grow, limits, metrics."""

import asyncio
import contextlib
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from datakit.config import at_least, option
from datakit.errors import ConfigError
from datakit.pack.chat import ChatTokenizer, RenderError
from train.generate import LoadConfig
from train.model import CausalLM
from train.serve.answer_parts import KEPT, Answer, AnswerParts, Form, form_of, thinks_first
from train.serve.batching import Batcher, Job, QueueFullError, Sampling, TextStream, Token, stop_ids_of
from train.serve.requests import ChatMessage, Generation, Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig(LoadConfig):
    """Model, address and limits."""

    adapter: str = option("", "folder of LoRA adapters for the model of --model")
    name: str = option("", "name of the model in the API; default: the name of its folder")
    host: str = option("127.0.0.1", "address to listen on; 0.0.0.0: every network of the machine, with --api-key")
    port: int = option(8000, "port to listen on; 0: any free one")
    api_key: str = option("", "key that clients must send; better in the environment, as DATAKIT_API_KEY")
    allow_origin: tuple[str, ...] = option((), "web pages of these origins may use the API (CORS); default: none")
    slots: int = option(16, "answers that are generated at the same time")
    queue: int = option(64, "requests that may wait for a slot; more are answered with 429")
    context: int = option(0, "longest prompt and answer together, in tokens; 0: what the model allows, at most 8192")
    max_tokens: int = option(0, "longest answer; 0: what the context allows")
    temperature: float = option(-1.0, "for requests that name none; -1: as generation_config.json says, otherwise 1")
    timeout_s: float = option(600.0, "longest time for one request, waiting included")
    max_body_mb: float = option(4.0, "largest body of a request")
    max_clients: int = option(512, "open connections; more are answered with 503")

    def __post_init__(self) -> None:
        LoadConfig.__post_init__(self)
        at_least(self, 1, "slots", "max_clients")
        at_least(self, 0, "queue", "context", "max_tokens")
        if self.timeout_s <= 0 or self.max_body_mb <= 0 or not 0 <= self.port < 65536:
            raise ConfigError("timeout_s and max_body_mb must be above 0, port 0 to 65535")


class ApiError(HTTPException):
    """An error in OpenAI's shape: HTTP status, message, and the field and the code that programs read."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        headers = {429: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
        super().__init__(status, message, headers.get(status))
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
        kind = "server_error" if status >= 500 else kind
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(eq=False, slots=True)
class Choice:
    """One answer of a request."""

    index: int
    job: Job
    text: TextStream
    parts: AnswerParts
    tokens: list[Token] = field(default_factory=list)
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What one answer gained."""

    text: str
    said: Answer
    """The parts of the text."""
    tokens: Sequence[Token]


class Service:
    """The model with its tokenizer and batcher."""

    def __init__(
        self, config: ServeConfig, model: CausalLM, tokenizer: ChatTokenizer, plain: bool, folder: Path
    ) -> None:
        self.config, self.tokenizer, self.plain = config, tokenizer, plain
        self.name, self.created = config.name or folder.resolve().name, int(time.time())
        self.form: Form = form_of(tokenizer.template_source)
        found = {name: value for name, value in model.config.generation.items() if value is not None}
        self.stop_ids = stop_ids_of(model, tokenizer)
        self.hidden = self.stop_ids | {i for text, i in tokenizer.special.items() if text not in KEPT}
        usual: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
        self.defaults = usual | {name: found[name] for name in usual.keys() & found.keys()}
        if found.get("do_sample") is False:
            self.defaults["temperature"] = 0.0
        if config.temperature >= 0:
            self.defaults["temperature"] = config.temperature
        context = config.context or min(model.config.max_positions, 8192)
        self.batcher = Batcher(model, self._deliver, config.slots, context, config.queue)
        self.counts = Counter[str]()
        """Counters for Prometheus, by name and labels."""
        self.loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def of(cls, config: ServeConfig) -> "Service":
        """Load the model.

        Raises:
            DatakitError: no model there, or it does not fit its tokenizer or adapters.
        """
        model, tokenizer, state = config.loaded(config.adapter)
        return cls(config, model, tokenizer, state.get("task") == "pretrain", Path(config.adapter or config.model))

    def _deliver(self, events: list[tuple[Job, Token]]) -> None:
        """Pass tokens from the generating thread to the loop; they are nobody's once the loop has ended."""

        def receive() -> None:
            for job, token in events:
                if job.receive is not None:
                    job.receive(token)

        with contextlib.suppress(RuntimeError):
            if self.loop is not None:
                self.loop.call_soon_threadsafe(receive)

    def check_model(self, name: str) -> None:
        """Refuse a model that is not served."""
        if name not in ("", self.name):
            message = f"the model {name!r} does not exist; this server has {self.name!r}"
            raise ApiError(404, message, "model", "model_not_found")

    def prompt_of(self, messages: Sequence[ChatMessage], tools: Sequence[Tool], variables: dict[str, Any]) -> list[int]:
        """The ids of a conversation.

        Raises:
            ApiError: the template refuses it.
        """
        if self.plain:
            message = f"{self.name} was trained on plain text and has no chat turns; use /v1/completions"
            raise ApiError(400, message, "messages", "plain_text")
        described = [tool.model_dump(exclude_none=True) for tool in tools] or None
        turns = [message.plain() for message in messages]
        json.dumps([turns, described, variables], ensure_ascii=False).encode()  # UnicodeError: see `encoded`
        try:
            return self.tokenizer.encode_prompt(turns, described, **variables)
        except RenderError as e:
            raise ApiError(400, f"the chat template refuses this conversation: {e}", "messages") from None

    def encoded(self, text: str) -> list[int]:
        """The ids of a plain text, with the first token that the tokenizer's settings ask for.

        Raises:
            UnicodeError: half of a surrogate pair, which JSON can say and no tokenizer can read.
        """
        text.encode()
        return self.tokenizer.encode_document(text)

    def choices(
        self, prompts: Sequence[list[int]], body: Generation, logprobs: int, form: Form | None = None,
        beginning: str = "", most_calls: int | None = None,
    ) -> list[Choice]:  # fmt: skip
        """The answers to generate, `n` for each prompt; `logprobs` as in `Sampling`, the rest as in `AnswerParts`.

        Raises:
            ApiError: a prompt is empty, too long, or has ids that the model does not have.
        """
        found: list[Choice] = []
        seed = secrets.randbits(62) if body.seed is None else body.seed
        deadline = time.monotonic() + self.config.timeout_s
        stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
        for prompt in prompts:
            sampling = self._sampling(body, prompt, logprobs)
            thinking = not self.plain and thinks_first(self.tokenizer.decode(prompt[-16:]))
            for _ in range(body.n or 1):
                job = Job(prompt, replace(sampling, seed=seed + len(found)), deadline)
                parts = AnswerParts(form, thinking, beginning, most_calls)
                found.append(Choice(len(found), job, TextStream(self._decode, stop), parts))
        return found

    def _sampling(self, body: Generation, prompt: Sequence[int], logprobs: int) -> Sampling:
        engine = self.batcher.engine
        context, vocabulary = engine.context, engine.model.config.vocab_size
        if not 0 < len(prompt) < context:
            wanted = f"expected 1 to {context - 1}, so that an answer fits into the context of {context}"
            code = "context_length_exceeded" if prompt else None
            raise ApiError(400, f"the prompt has {len(prompt)} tokens; {wanted}", "messages", code)
        bias = {int(token): amount for token, amount in (body.logit_bias or {}).items()}
        if (largest := max(*prompt, *bias, 0)) >= vocabulary:
            message = f"prompt and logit_bias: expected token ids below {vocabulary}, found {largest}"
            raise ApiError(400, message, "logit_bias" if largest in bias else "prompt")
        given: dict[str, Any] = body.model_dump(exclude_none=True)
        chosen: dict[str, Any] = {name: given.get(name, value) for name, value in self.defaults.items()}
        most = self.config.max_tokens or context
        wished = given.get("max_completion_tokens", given.get("max_tokens", most))
        chosen |= {"top_k": max(chosen["top_k"], 0), "max_new_tokens": min(wished, most, context - len(prompt))}
        return Sampling(
            **chosen,
            presence_penalty=body.presence_penalty or 0.0,
            frequency_penalty=body.frequency_penalty or 0.0,
            logit_bias=bias,
            logprobs=logprobs,
            stop_ids=frozenset(body.stop_token_ids or ()) | (frozenset() if body.ignore_eos else self.stop_ids),
        )

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([i for i in ids if i not in self.hidden])

    async def run(self, choices: Sequence[Choice]) -> AsyncIterator[tuple[Choice, Delta] | None]:
        """Generate the answers and yield what they gain, token by token, until all are complete.

        The first item is None: the request is queued. A caller that stops early frees the slots.

        Raises:
            ApiError: the queue is full, the time is over, or generating failed.
        """
        tokens: asyncio.Queue[tuple[Choice, Token]] = asyncio.Queue()
        for choice in choices:
            choice.job.receive = lambda token, choice=choice: tokens.put_nowait((choice, token))
        begun = time.monotonic()
        try:
            self.batcher.submit([choice.job for choice in choices])
        except QueueFullError as e:
            raise ApiError(429, f"{e}; try again later", code="queue_full") from None
        try:
            yield None
            while not all(choice.finish for choice in choices):
                choice, token = await tokens.get()
                if not any(c.tokens for c in choices):
                    self._observe("first_token_seconds", begun)
                if not choice.finish:
                    yield choice, self._gained(choice, token)
        finally:
            for choice in choices:
                choice.job.cancelled = True
            self._observe("request_seconds", begun)

    def _observe(self, name: str, begun: float) -> None:
        """Count the time since `begun`, as a summary of Prometheus."""
        self.counts[f"{name}_sum"] += time.monotonic() - begun  # type: ignore[assignment]
        self.counts[f"{name}_count"] += 1

    def _gained(self, choice: Choice, token: Token) -> Delta:
        """What a token adds to its answer."""
        if token.finish == "timeout":
            raise ApiError(504, f"the answer took longer than {self.config.timeout_s:g} s", code="timeout")
        if token.id < 0:
            raise ApiError(500, token.message or "generation ended early", code=token.finish)
        choice.tokens.append(token)
        text = "" if token.finish == "stop" else choice.text.add(token.id)
        if choice.text.ended or token.finish:
            text += choice.text.end()
            choice.finish = "length" if token.finish == "length" and not choice.text.ended else "stop"
        said, calls = choice.parts.add(text, last=bool(choice.finish)), len(choice.parts.whole.calls)
        if calls and (choice.finish == "stop" or calls == choice.parts.most_calls):
            choice.finish = "tool_calls"
        choice.job.cancelled = bool(choice.finish)  # a stop string or a call may end it before the engine does
        return Delta(text, said, [token])

    def metrics(self) -> str:
        """Counters and states as Prometheus reads them; times are summaries, so a rate of sums gives means."""
        engine = self.batcher.engine
        now = {
            "slots_busy": len(engine.running), "requests_waiting": self.batcher.waiting, "steps": engine.steps,
            "prompt_tokens": engine.prompt_tokens, "prompt_tokens_reused": engine.reused_tokens,
            "generated_tokens": engine.generated_tokens,
        }  # fmt: skip
        return "".join(f"{name} {value}\n" for name, value in {**self.counts, **now}.items())

    def logprob(self, token_id: int, logprob: float) -> dict[str, Any]:
        """A token with its log-probability, as OpenAI gives it; part of a character has no `bytes`."""
        text = self.tokenizer.decode([token_id])
        return {"token": text, "logprob": logprob, "bytes": None if "\ufffd" in text else list(text.encode())}
