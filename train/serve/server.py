"""An HTTP server that speaks OpenAI's API, with a page to chat on.

python -m train.serve --model out/run
"""

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from datakit.errors import UsageError
from train import flags
from train.serve.answer_parts import Answer, forced
from train.serve.batching import Token
from train.serve.requests import ChatRequest, CompletionRequest, ErrorBody, Generation, TokenizeRequest, Tool
from train.serve.service import ApiError, Choice, Delta, ServeConfig, Service

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


def application(service: Service) -> ASGIApp:
    """The web application of a model."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.loop = asyncio.get_running_loop()
        yield
        await asyncio.to_thread(service.batcher.close)

    refusals: dict[int | str, dict[str, Any]] = {code: {"model": ErrorBody} for code in REFUSALS}
    no_pages: dict[str, Any] = {"docs_url": None, "redoc_url": None}  # they load scripts from elsewhere
    app = FastAPI(title="datakit", version="1", lifespan=lifespan, responses=refusals, **no_pages)
    for kind in (HTTPException, RequestValidationError, UnicodeError, Exception):
        app.add_exception_handler(kind, refused)
    api = Api(service)
    for method, path, endpoint in (
        ("GET", "/v1/models", api.models),
        ("GET", "/v1/models/{name:path}", api.model),
        ("POST", "/v1/chat/completions", api.chat),
        ("POST", "/v1/completions", api.completions),
        ("POST", "/v1/tokenize", api.tokenize),
        ("GET", "/health", api.health),
    ):
        app.add_api_route(path, endpoint, methods=[method], operation_id=endpoint.__name__)
    app.add_api_route("/metrics", service.metrics, response_class=PlainTextResponse)
    app.add_api_route("/tokenize", api.tokenize, methods=["POST"], include_in_schema=False)  # where vLLM has it
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
        at = ".".join(str(part) for part in first["loc"] if part != "body")
        message = f"{at}: {first['msg']}" if at else "expected a JSON object with content-type application/json"
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
    """What stands before the application: hosts, keys, the size of bodies and the time they take; counts requests."""

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

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = getattr(scope.get("route"), "path", "other")
                self.service.counts[f'requests_total{{path="{path}",status="{message["status"]}"}}'] += 1
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"], headers["content-security-policy"] = "nosniff", POLICY
            await send(message)

        try:
            self._check(scope["path"], Headers(scope=scope))
        except ApiError as e:
            await refused(Request(scope), e)(scope, receive, counted)
        else:
            await self.app(scope, limited, counted)

    def _check(self, path: str, headers: Headers) -> None:
        """Refuse other hosts on a loopback address (DNS rebinding), and requests without the key."""
        host = headers.get("host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self.service.config.host in LOOPBACK and not self.key and name.lower() not in LOOPBACK:
            raise ApiError(403, "this server answers on its own machine only; start it with --host and --api-key")
        if not self.key or not path.startswith(("/v1/", "/tokenize")):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.key):
            message = "the key is missing or wrong; send it as `Authorization: Bearer KEY`"
            raise ApiError(401, message, code="invalid_api_key")


class Api:
    """The endpoints."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def health(self) -> Response:
        """200 while the server can generate, 503 if its thread has died."""
        if not self.service.batcher.alive:
            raise ApiError(503, "the generating thread has died; start the server again")
        return _json({"status": "ok"})

    async def models(self) -> Response:
        """The one model that is served."""
        return _json({"object": "list", "data": [self._model()]})

    async def model(self, name: str) -> Response:
        """The served model by its name."""
        self.service.check_model(name)
        return _json(self._model())

    def _model(self) -> dict[str, Any]:
        s = self.service
        head = {"id": s.name, "object": "model", "created": s.created, "owned_by": "datakit"}
        return head | {"max_model_len": s.batcher.engine.context, "plain_text": s.plain, "sampling": s.defaults}

    async def tokenize(self, body: TokenizeRequest) -> Response:
        """The ids of a text or a conversation."""
        s = self.service
        s.check_model(body.model)
        if (body.prompt is None) == (body.messages is None):
            raise ApiError(400, "expected either prompt or messages", "prompt")
        if body.messages is not None:
            ids = await asyncio.to_thread(s.prompt_of, body.messages, body.tools or (), body.chat_template_kwargs or {})
        else:
            ids = await asyncio.to_thread(s.encoded, body.prompt or "")
        names = [s.tokenizer.token(i) for i in ids] if body.return_token_strs else None
        return _json({"count": len(ids), "max_model_len": s.batcher.engine.context, "tokens": ids, "token_strs": names})

    async def chat(self, body: ChatRequest, request: Request) -> Response:
        """The next turn of a conversation."""
        s = self.service
        s.check_model(body.model)
        if body.top_logprobs and not body.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs = true", "top_logprobs")
        asked = body.tool_choice
        tools = [] if asked == "none" else body.tools or []
        named = asked.function.name if isinstance(asked, Tool) else None
        must = named is not None or asked == "required"
        if must and not any(named in (None, tool.function.name) for tool in tools):
            raise ApiError(400, f"tool_choice: found no tool {named or ''} among the tools", "tool_choice")
        prompt = await asyncio.to_thread(s.prompt_of, body.messages, tools, body.chat_template_kwargs or {})
        beginning = forced(s.form, named) if must else ""
        prompt = prompt + s.tokenizer.encode_trusted(beginning)
        most_calls = 1 if must or body.parallel_tool_calls is False else None
        logprobs = (body.top_logprobs or 0) if body.logprobs else -1
        choices = s.choices([prompt], body, logprobs, s.form if tools else None, beginning, most_calls)
        return await self._answer(request, body, choices, self._chat, "chatcmpl", "chat.completion")

    async def completions(self, body: CompletionRequest, request: Request) -> Response:
        """The continuation of plain texts."""
        s = self.service
        s.check_model(body.model)
        one = isinstance(body.prompt, str) or isinstance(body.prompt[0], int)
        given: Any = [body.prompt] if one else body.prompt
        prompts = [await asyncio.to_thread(s.encoded, p) if isinstance(p, str) else list(p) for p in given]
        choices = s.choices(prompts, body, -1 if body.logprobs is None else body.logprobs)
        return await self._answer(request, body, choices, self._text, "cmpl", "text_completion")

    async def _answer(
        self, request: Request, body: Generation, choices: Sequence[Choice], shape: "Shape", prefix: str, kind: str
    ) -> Response:
        """The response of a generation, streamed or whole."""
        head = {"id": f"{prefix}-{secrets.token_hex(12)}", "object": kind, "created": int(time.time())}
        head["model"] = self.service.name
        steps = self.service.run(choices)
        if body.stream:
            await anext(steps)  # so that a request that cannot be queued gets its status
            head |= {"object": "chat.completion.chunk"} if prefix == "chatcmpl" else {}
            usage = bool(body.stream_options and body.stream_options.include_usage)
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            events = _events(steps, choices, head, shape, usage)
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        async with contextlib.aclosing(steps):  # type: ignore[type-var]
            async for _ in steps:
                if await request.is_disconnected():
                    return Response(status_code=499)
        wholes = [shape(c, Delta(c.parts.text, c.parts.whole, c.tokens), True) for c in choices]
        return _json(head | {"choices": wholes, "usage": _usage(choices)})

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
        decode, found = self.service.tokenizer.decode, list[dict[str, Any]]()
        for token_id, logprob in ((token.id, token.logprob), *token.top):
            text = decode([token_id])
            of_bytes = None if "\ufffd" in text else list(text.encode())
            found.append({"token": text, "logprob": logprob, "bytes": of_bytes})
        return found[0] | {"top_logprobs": found[1:]}

    def _text(self, choice: Choice, delta: Delta, whole: bool) -> dict[str, Any]:
        """The continuation of a plain text, or what it gained."""
        found: dict[str, Any] = {"index": choice.index, "text": delta.text, "logprobs": None}
        if choice.job.sampling.logprobs >= 0 and delta.tokens:
            decode = self.service.tokenizer.decode
            found["logprobs"] = {
                "tokens": [decode([token.id]) for token in delta.tokens],
                "token_logprobs": [token.logprob for token in delta.tokens],
                "top_logprobs": [{decode([i]): p for i, p in reversed(token.top)} for token in delta.tokens],
            }
        return found | {"finish_reason": choice.finish}


Shape = Callable[[Choice, Delta, bool], dict[str, Any]]
"""The form of an answer, or of what it gained, in the API."""


async def _events(
    steps: AsyncIterator[tuple[Choice, Delta] | None], choices: Sequence[Choice], head: dict[str, Any], shape: Shape,
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


def _json(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), media_type="application/json")


def _usage(choices: Sequence[Choice]) -> dict[str, Any]:
    """Tokens of prompts, each prompt once, and of answers."""
    jobs = {id(choice.job.prompt): choice.job for choice in choices}.values()
    prompt, answer = sum(len(job.prompt) for job in jobs), sum(len(choice.tokens) for choice in choices)
    found: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return found | {"prompt_tokens_details": {"cached_tokens": sum(job.reused for job in jobs)}}


def main(argv: Sequence[str], prog: str = "python -m train.serve") -> int:
    """Serve until Ctrl-C; returns the exit code."""
    config = flags.built(ServeConfig, flags.given(ServeConfig, prog, __doc__, argv))
    if config.host not in LOOPBACK and not (config.api_key or os.environ.get("DATAKIT_API_KEY")):
        raise UsageError(f"--host {config.host} lets other machines in: give --api-key or DATAKIT_API_KEY too")
    listening = _listen(config)
    service = Service.of(config)
    listening.listen(128)  # clients that connect from here on are served
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    print(f"{service.name}: chat on {url} or give {url}v1 to any OpenAI client", flush=True)
    settings: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    settings |= {"limit_concurrency": config.max_clients, "timeout_keep_alive": 15, "timeout_graceful_shutdown": 5}
    server = uvicorn.Server(uvicorn.Config(application(service), http="h11", **settings))
    server.run(sockets=[listening])
    return 0


def _listen(config: ServeConfig) -> socket.socket:
    """The listening socket, opened before the model is loaded: a taken port is an error at once.

    Raises:
        UsageError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as e:
        message = f"cannot listen on {config.host}:{config.port} ({e.strerror}); give another --port or --host"
        raise UsageError(message) from None
    return listening


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
