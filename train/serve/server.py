"""An HTTP server that speaks OpenAI's API, with a page to chat on.

python -m train.serve --model out/run

A request passes `Guard`, an endpoint of `Service`, and `Service.run`, which gets tokens from the thread of the batcher.
"""

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from datakit.config import at_least, option
from datakit.errors import ConfigError, UsageError
from datakit.pack.chat import RenderError
from train import flags
from train.generate import LoadConfig
from train.serve import requests
from train.serve.answer_parts import KEPT, Answer, AnswerParts, thinks_first
from train.serve.batching import Batcher, Job, QueueFullError, Sampling, TextStream, Token, stop_ids_of

PAGE = Path(__file__).with_name("page")
BODY_SECONDS = 30.0
"""Time for the body of a request; slower clients are cut off."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may load and ask nothing but this server."""

REFUSALS = (400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 504)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig(LoadConfig):
    """Model, address and limits."""

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
    """The model with its tokenizer and batcher, and the endpoints."""

    def __init__(self, config: ServeConfig) -> None:
        """Load the model.

        Raises:
            DatakitError: no model there, or it does not fit its tokenizer or adapters.
        """
        model, tokenizer, state = config.loaded()
        self.config, self.tokenizer, self.plain = config, tokenizer, state.get("task") == "pretrain"
        self.name = config.name or Path(config.model).resolve().name
        self.stop_ids = stop_ids_of(model, tokenizer)
        self.hidden = self.stop_ids | {i for text, i in tokenizer.special.items() if text not in KEPT}
        found = {name: value for name, value in model.config.generation.items() if value is not None}
        usual: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
        self.defaults = usual | {name: found[name] for name in usual.keys() & found.keys()}
        if config.temperature >= 0 or found.get("do_sample") is False:
            self.defaults["temperature"] = max(0.0, config.temperature)
        context = config.context or min(model.config.max_positions, 8192)
        self.batcher = Batcher(model, config.slots, context, config.queue)
        self.about = {
            "id": self.name, "object": "model", "created": int(time.time()), "owned_by": "datakit",
            "max_model_len": self.batcher.engine.context, "plain_text": self.plain, "sampling": self.defaults,
        }  # fmt: skip

    def check_model(self, name: str) -> None:
        """Refuse a model that is not served."""
        if name not in ("", self.name):
            message = f"the model {name!r} does not exist; this server has {self.name!r}"
            raise ApiError(404, message, "model", "model_not_found")

    def prompt_of(
        self, messages: Sequence[requests.ChatMessage], tools: Sequence[requests.Tool], variables: dict[str, Any]
    ) -> list[int]:
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
        self, prompts: Sequence[list[int]], body: requests.Generation, logprobs: int, tools: bool = False
    ) -> list[Choice]:
        """The answers to generate, `n` for each prompt; `logprobs` as in `Sampling`, `tools` as in `AnswerParts`.

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
                found.append(Choice(len(found), job, TextStream(self._decode, stop), AnswerParts(tools, thinking)))
        return found

    def _sampling(self, body: requests.Generation, prompt: Sequence[int], logprobs: int) -> Sampling:
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
        penalties = {name: given.get(name, 0.0) for name in ("presence_penalty", "frequency_penalty")}
        stop_ids = frozenset(body.stop_token_ids or ()) | (frozenset() if body.ignore_eos else self.stop_ids)
        return Sampling(**chosen, **penalties, logit_bias=bias, logprobs=logprobs, stop_ids=stop_ids)

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([i for i in ids if i not in self.hidden])

    async def run(self, choices: Sequence[Choice]) -> AsyncIterator[tuple[Choice, Delta]]:
        """Generate the answers and yield what they gain, token by token, until all are complete.

        The first item is None: the request is queued. A caller that stops early frees the slots.

        Raises:
            ApiError: the queue is full, the time is over, or generating failed.
        """
        tokens: asyncio.Queue[tuple[Choice, Token]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def received(choice: Choice, token: Token) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever waits
                loop.call_soon_threadsafe(tokens.put_nowait, (choice, token))

        for choice in choices:
            choice.job.receive = partial(received, choice)
        try:
            self.batcher.submit([choice.job for choice in choices])
        except QueueFullError as e:
            raise ApiError(429, f"{e}; try again later", code="queue_full") from None
        try:
            yield None  # type: ignore[misc]
            while not all(choice.finish for choice in choices):
                choice, token = await tokens.get()
                if not choice.finish:
                    yield choice, self._gained(choice, token)
        finally:
            for choice in choices:
                choice.job.cancelled = True

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
        said = choice.parts.add(text, last=bool(choice.finish))
        if choice.parts.whole.calls and choice.finish == "stop":
            choice.finish = "tool_calls"
        choice.job.cancelled = bool(choice.finish)  # a stop string may end it before the engine does
        return Delta(text, said, [token])

    async def health(self) -> Response:
        """What the server does; 503 if its thread has died."""
        if not self.batcher.thread.is_alive():
            raise ApiError(503, "the generating thread has died; start the server again")
        engine = self.batcher.engine
        return JSONResponse({
            "status": "ok", "slots_busy": len(engine.running), "requests_waiting": self.batcher.waiting,
            "steps": engine.steps, "prompt_tokens": engine.prompt_tokens,
            "prompt_tokens_reused": engine.reused_tokens, "generated_tokens": engine.generated_tokens,
        })  # fmt: skip

    async def models(self) -> Response:
        """The one model that is served."""
        return JSONResponse({"object": "list", "data": [self.about]})

    async def model(self, name: str) -> Response:
        """The served model by its name."""
        self.check_model(name)
        return JSONResponse(self.about)

    async def chat(self, body: requests.ChatRequest, request: Request) -> Response:
        """The next turn of a conversation."""
        self.check_model(body.model)
        if body.top_logprobs and not body.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs = true", "top_logprobs")
        tools = [] if body.tool_choice == "none" else body.tools or []
        prompt = await asyncio.to_thread(self.prompt_of, body.messages, tools, body.chat_template_kwargs or {})
        logprobs = (body.top_logprobs or 0) if body.logprobs else -1
        choices = self.choices([prompt], body, logprobs, tools=bool(tools))
        return await self._answer(request, body, choices, self._chat, "chatcmpl")

    async def completions(self, body: requests.CompletionRequest, request: Request) -> Response:
        """The continuation of plain texts."""
        self.check_model(body.model)
        one = isinstance(body.prompt, str) or isinstance(body.prompt[0], int)
        given: Any = [body.prompt] if one else body.prompt
        prompts = [await asyncio.to_thread(self.encoded, p) if isinstance(p, str) else list(p) for p in given]
        choices = self.choices(prompts, body, -1 if body.logprobs is None else body.logprobs)
        return await self._answer(request, body, choices, self._text, "cmpl")

    async def _answer(
        self, request: Request, body: requests.Generation, choices: Sequence[Choice], shape: "Shape", prefix: str
    ) -> Response:
        """The response of a generation, streamed or whole."""
        whole = {"chatcmpl": "chat.completion", "cmpl": "text_completion"}[prefix]
        head = {"id": f"{prefix}-{secrets.token_hex(12)}", "object": whole, "created": int(time.time())}
        head["model"] = self.name
        steps = self.run(choices)
        if body.stream:
            await anext(steps)  # so that a request that cannot be queued gets its status
            head |= {"object": "chat.completion.chunk"} if prefix == "chatcmpl" else {}
            usage = bool((body.stream_options or {}).get("include_usage"))
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            events = _events(steps, choices, head, shape, usage)
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        async with contextlib.aclosing(steps):  # type: ignore[type-var]
            async for _ in steps:
                if await request.is_disconnected():
                    return Response(status_code=499)
        wholes = [shape(c, Delta(c.parts.text, c.parts.whole, c.tokens), True) for c in choices]
        return JSONResponse(head | {"choices": wholes, "usage": _usage(choices)})

    def _chat(self, choice: Choice, delta: Delta, whole: bool) -> dict[str, Any]:
        """A chat answer, or what it gained."""
        first = len(choice.parts.whole.calls) - len(delta.said.calls)
        said: dict[str, Any] = {"content": delta.said.content, "reasoning_content": delta.said.reasoning}
        said["tool_calls"] = [
            {"index": i, "id": f"call_{secrets.token_hex(12)}", "type": "function",
             "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(delta.said.calls, first)
        ]  # fmt: skip
        said = {key: value for key, value in said.items() if value}
        if whole:
            said = {"role": "assistant", "content": None if "tool_calls" in said else ""} | said
        logprobs = None
        if choice.job.sampling.logprobs >= 0 and delta.tokens:
            logprobs = {"content": [self._logprob(token) for token in delta.tokens]}
        return {"index": choice.index, "message" if whole else "delta": said, "logprobs": logprobs,
                "finish_reason": choice.finish}  # fmt: skip

    def _logprob(self, token: Token) -> dict[str, Any]:
        """A token with its log-probability, as OpenAI gives it; part of a character has no `bytes`."""
        decode, found = self.tokenizer.decode, list[dict[str, Any]]()
        for token_id, logprob in ((token.id, token.logprob), *token.top):
            text = decode([token_id])
            of_bytes = None if "\ufffd" in text else list(text.encode())
            found.append({"token": text, "logprob": logprob, "bytes": of_bytes})
        return found[0] | {"top_logprobs": found[1:]}

    def _text(self, choice: Choice, delta: Delta, whole: bool) -> dict[str, Any]:
        """The continuation of a plain text, or what it gained."""
        found: dict[str, Any] = {"index": choice.index, "text": delta.text, "logprobs": None}
        if choice.job.sampling.logprobs >= 0 and delta.tokens:
            decode = self.tokenizer.decode
            found["logprobs"] = {
                "tokens": [decode([token.id]) for token in delta.tokens],
                "token_logprobs": [token.logprob for token in delta.tokens],
                "top_logprobs": [{decode([i]): p for i, p in reversed(token.top)} for token in delta.tokens],
            }
        return found | {"finish_reason": choice.finish}


Shape = Callable[[Choice, Delta, bool], dict[str, Any]]
"""The form of an answer, or of what it gained, in the API."""


async def _events(
    steps: AsyncIterator[tuple[Choice, Delta]], choices: Sequence[Choice], head: dict[str, Any], shape: Shape,
    usage: bool,
) -> AsyncIterator[bytes]:  # fmt: skip
    """The server-sent events of a streamed answer; an error in the middle is an event too."""
    none = {"usage": None} if usage else {}

    def event(value: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"

    async with contextlib.aclosing(steps):  # type: ignore[type-var]
        try:
            for choice in choices:
                begin = shape(choice, Delta("", Answer(), ()), False)
                begin |= {"delta": {"role": "assistant", "content": ""}} if "delta" in begin else {}
                yield event(head | {"choices": [begin]} | none)
            async for gained in steps:
                one = shape(*gained, False)
                if one.get("delta", one.get("text")) or one["logprobs"] or one["finish_reason"]:
                    yield event(head | {"choices": [one]} | none)
            if usage:
                yield event(head | {"choices": [], "usage": _usage(choices)})
        except ApiError as e:
            yield event(e.body)
    yield b"data: [DONE]\n\n"


def _usage(choices: Sequence[Choice]) -> dict[str, Any]:
    """Tokens of prompts, each prompt once, and of answers."""
    jobs = {id(choice.job.prompt): choice.job for choice in choices}.values()
    prompt, answer = sum(len(job.prompt) for job in jobs), sum(len(choice.tokens) for choice in choices)
    found: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return found | {"prompt_tokens_details": {"cached_tokens": sum(job.reused for job in jobs)}}


def application(service: Service) -> ASGIApp:
    """The web application of a model."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.batcher.close)

    refusals: dict[int | str, dict[str, Any]] = {code: {"model": requests.ErrorBody} for code in REFUSALS}
    no_pages: dict[str, Any] = {"docs_url": None, "redoc_url": None}  # they load scripts from elsewhere
    app = FastAPI(title="datakit", version="1", lifespan=lifespan, responses=refusals, **no_pages)
    for kind in (HTTPException, RequestValidationError, UnicodeError, Exception):
        app.add_exception_handler(kind, refused)
    for method, path, endpoint in (
        ("GET", "/v1/models", service.models), ("GET", "/v1/models/{name:path}", service.model),
        ("POST", "/v1/chat/completions", service.chat), ("POST", "/v1/completions", service.completions),
        ("GET", "/health", service.health),
    ):  # fmt: skip
        app.add_api_route(path, endpoint, methods=[method], operation_id=endpoint.__name__)
    app.add_api_route("/", lambda: FileResponse(PAGE / "index.html"), include_in_schema=False)
    app.mount("/page", StaticFiles(directory=PAGE))
    guarded: ASGIApp = Guard(app, service)
    if service.config.allow_origin:
        guarded = CORSMiddleware(guarded, service.config.allow_origin, allow_methods=["*"], allow_headers=["*"])
    return guarded


def refused(request: Request, e: Exception) -> Response:
    """The response to a request that failed; ASCII, since a message may quote anything."""
    if isinstance(e, RequestValidationError):
        first = e.errors()[0]
        broken = first["type"] == "json_invalid"  # its place is a character
        at = "" if broken else ".".join(str(part) for part in first["loc"] if part != "body")
        what = f"{first['ctx']['error']} at character {first['loc'][-1]}" if broken else first["msg"]
        message = f"{at}: {what}" if at else f"expected a JSON object with content-type application/json: {what}"
        e = ApiError(400, message, param=at or None)
    elif isinstance(e, UnicodeError):
        e = ApiError(400, "a text holds half of a surrogate pair, which is no character")
    elif not isinstance(e, HTTPException):
        e = ApiError(500, f"{type(e).__name__}: see log")
    elif not isinstance(e, ApiError):
        code = "not_found" if e.status_code == 404 else None
        e = ApiError(e.status_code, f"{request.method} {request.url.path}: {e.detail}", code=code)
    return Response(json.dumps(e.body), e.status_code, e.headers, media_type="application/json")


class Guard:
    """What stands before the application: hosts, keys, the size of bodies and the time they take."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        key = service.config.api_key or os.environ.get("DATAKIT_API_KEY", "")
        self.key, self.most = key.encode(), int(service.config.max_body_mb * 1e6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with an error."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found, more, end = 0, True, time.monotonic() + BODY_SECONDS

        async def limited() -> Message:
            nonlocal found, more
            try:
                async with asyncio.timeout(end - time.monotonic() if more else None):
                    message = await receive()
            except TimeoutError:
                raise ApiError(408, f"the body did not come within {BODY_SECONDS:g} s") from None
            found, more = found + len(message.get("body", b"")), more and message.get("more_body", False)
            if found > self.most:
                raise ApiError(413, f"the body is larger than {self.most} bytes (--max-body-mb)")
            return message

        async def shielded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"], headers["content-security-policy"] = "nosniff", POLICY
            await send(message)

        try:
            self._check(scope["path"], Headers(scope=scope))
        except ApiError as e:
            await refused(Request(scope), e)(scope, receive, shielded)
        else:
            await self.app(scope, limited, shielded)

    def _check(self, path: str, headers: Headers) -> None:
        """Refuse other hosts on a loopback address (DNS rebinding), and requests without the key."""
        host = headers.get("host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self.service.config.host in LOOPBACK and not self.key and name.lower() not in LOOPBACK:
            raise ApiError(403, "this server answers on its own machine only; start it with --host and --api-key")
        if not self.key or not path.startswith("/v1/"):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.key):
            message = "the key is missing or wrong; send it as `Authorization: Bearer KEY`"
            raise ApiError(401, message, code="invalid_api_key")


def serve(config: ServeConfig) -> None:
    """Serve until Ctrl-C."""
    if config.host not in LOOPBACK and not (config.api_key or os.environ.get("DATAKIT_API_KEY")):
        raise UsageError(f"--host {config.host} lets other machines in: give --api-key or DATAKIT_API_KEY too")
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:  # before the model is loaded: a taken port is an error at once
        listening = socket.create_server((config.host, config.port), family=family)
    except OSError as e:
        message = f"cannot listen on {config.host}:{config.port} ({e.strerror}); give another --port or --host"
        raise UsageError(message) from None
    service = Service(config)
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    print(f"{service.name}: chat on {url} or give {url}v1 to any OpenAI client", flush=True)
    settings: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    settings |= {"limit_concurrency": config.max_clients, "timeout_keep_alive": 15, "timeout_graceful_shutdown": 5}
    server = uvicorn.Server(uvicorn.Config(application(service), http="h11", **settings))
    server.run(sockets=[listening])


main = flags.command(ServeConfig, __name__, __doc__, serve)
