"""An HTTP server that speaks OpenAI's API, with a page to chat on.

python -m train.serve --checkpoint out/run
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
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import datakit
from datakit.errors import UsageError
from train.engine import flags
from train.serve.answers import forced
from train.serve.requests import (
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    NamedTool,
    TokenizeRequest,
)
from train.serve.service import ApiError, Choice, Delta, ServeConfig, Service

PAGE = Path(__file__).with_name("page")
HEAD_SECONDS, HEAD_BYTES = 15.0, 1 << 16
"""Time and size in which a client must have sent the head of a request."""
BODY_SECONDS = 30.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The page may load and ask nothing but this server."""


def application(service: Service) -> ASGIApp:
    """The web application of a model."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.loop = asyncio.get_running_loop()
        yield
        await asyncio.to_thread(service.batcher.close)

    refusals = {
        code: {"description": about, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
        for code, about in {
            400: "a request that makes no sense", 401: "no or another key", 403: "another host", 404: "no such model",
            408: "the body came too slowly", 413: "the body is too large", 422: "not used", 429: "the queue is full",
            500: "generating failed", 504: "the time is over",
        }.items()
    }  # fmt: skip
    app = FastAPI(
        title="datakit", version=datakit.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        responses=refusals, separate_input_output_schemas=False,  # type: ignore[arg-type]
    )  # fmt: skip
    app.add_exception_handler(ApiError, lambda request, e: _refusal(e))
    app.add_exception_handler(RequestValidationError, lambda request, e: _refusal(_unfit(e)))
    app.add_exception_handler(HTTPException, lambda request, e: _refusal(_http_error(request, e)))
    app.add_exception_handler(Exception, lambda request, e: _refusal(ApiError(500, f"{type(e).__name__}: see the log")))
    api = Api(service)
    add = app.add_api_route
    add("/v1/models", api.models, methods=["GET"], operation_id="models")
    add("/v1/models/{name:path}", api.model, methods=["GET"], operation_id="model")
    add("/v1/chat/completions", api.chat, methods=["POST"], operation_id="chat")
    add("/v1/completions", api.completions, methods=["POST"], operation_id="completions")
    for prefix in ("/v1", ""):
        hidden = not prefix
        add(
            f"{prefix}/tokenize",
            api.tokenize,
            methods=["POST"],
            operation_id=f"tokenize{prefix}",
            include_in_schema=not hidden,
        )
        add(
            f"{prefix}/detokenize",
            api.detokenize,
            methods=["POST"],
            operation_id=f"detokenize{prefix}",
            include_in_schema=not hidden,
        )
    add("/health", api.health, methods=["GET"], operation_id="health")
    add("/metrics", api.metrics, methods=["GET"], operation_id="metrics")
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    guarded: ASGIApp = Guard(app, service)
    if service.config.allow_origin:
        guarded = CORSMiddleware(guarded, service.config.allow_origin, allow_methods=["*"], allow_headers=["*"])
    return guarded


def _refusal(e: ApiError) -> Response:
    return e.response()


def _unfit(e: RequestValidationError) -> ApiError:
    """The first thing that is wrong with a body."""
    first = e.errors()[0]
    at = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is no JSON: {first['ctx']['error']}")
    expected = "expected a JSON object with content-type application/json" if not at else first["msg"]
    return ApiError(400, f"{at}: {expected}" if at else expected, param=at or None)


def _http_error(request: Request, e: Exception) -> ApiError:
    assert isinstance(e, HTTPException)
    message = f"{request.method} {request.url.path}: {e.detail}"
    error = ApiError(e.status_code, message, code="not_found" if e.status_code == 404 else None)
    error.headers = dict(e.headers or {})
    return error


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
        headers = {name.lower(): value for name, value in scope["headers"]}

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")
                path = getattr(route, "path", None) or "other"
                self.service.metrics.requests.labels(path, str(message["status"])).inc()
                if scope["path"] in ("/", "/index.html"):
                    message["headers"] = [*message["headers"], (b"content-security-policy", POLICY.encode())]
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            self._check(scope, headers)
            body = await self._body(headers, receive) if scope["method"] in ("POST", "PUT", "PATCH") else b""
        except ApiError as e:
            await e.response()(scope, receive, counted)
            return
        if body is None:
            return  # the client went away
        whole: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(whole, None) or await receive()

        await self.app(scope, replay, counted)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse other hosts on a loopback address (DNS rebinding), and requests without the key."""
        host = headers.get(b"host", b"").decode("latin-1")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self.service.config.host in LOOPBACK and not self.key and name.lower() not in LOOPBACK:
            raise ApiError(403, "this server answers on its own machine only; start it with --host and --api-key")
        if not self.key or not scope["path"].startswith(("/v1/", "/tokenize", "/detokenize")):
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self.key):
            raise ApiError(
                401, "the key is missing or wrong; send it as `Authorization: Bearer KEY`", code="invalid_api_key"
            )

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The whole body; None if the client goes away before its end."""
        too_large = ApiError(413, f"the body is larger than {self.most} bytes (--max-body-mb)")
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self.most:
            raise too_large
        found, more = bytearray(), True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    found += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(found) > self.most:
                        raise too_large
        except TimeoutError:
            raise ApiError(408, f"the body did not come within {BODY_SECONDS:g} s") from None
        return bytes(found)


class Api:
    """The endpoints."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def health(self) -> Response:
        """200 while the server can generate."""
        return Response(status_code=200)

    async def metrics(self) -> Response:
        """Prometheus text."""
        return Response(generate_latest(self.service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def models(self) -> Response:
        """The one model that is served."""
        return _json({"object": "list", "data": [self._model()]})

    async def model(self, name: str) -> Response:
        """The served model by its name."""
        self.service.check_model(name)
        return _json(self._model())

    def _model(self) -> dict[str, Any]:
        s = self.service
        return {
            "id": s.name, "object": "model", "created": s.created, "owned_by": "datakit",
            "max_model_len": s.batcher.context, "plain_text": s.plain,
        }  # fmt: skip

    async def tokenize(self, body: TokenizeRequest) -> Response:
        """The ids of a text or a conversation."""
        s = self.service
        s.check_model(body.model)
        if (body.prompt is None) == (body.messages is None):
            raise ApiError(400, "expected either prompt or messages", param="prompt")
        if body.prompt is None:
            ids = await asyncio.to_thread(s.prompt_of, body)
        else:
            ids = await asyncio.to_thread(s.encoded, body.prompt)
            bos = s.tokenizer.bos_id
            ids = [bos, *ids] if body.add_special_tokens and bos is not None else ids
        names = [s.tokenizer.token(i) for i in ids] if body.return_token_strs else None
        return _json({"count": len(ids), "max_model_len": s.batcher.context, "tokens": ids, "token_strs": names})

    async def detokenize(self, body: DetokenizeRequest) -> Response:
        """The text of ids."""
        s = self.service
        s.check_model(body.model)
        if unknown := [i for i in body.tokens if s.tokenizer.token(i) is None]:
            raise ApiError(400, f"tokens: {unknown[0]} is no id of this tokenizer", param="tokens")
        return _json({"prompt": s.tokenizer.decode(body.tokens)})

    async def chat(self, body: ChatRequest, request: Request) -> Response:
        """The next turn of a conversation."""
        s = self.service
        s.check_model(body.model)
        if body.top_logprobs and not body.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs = true", param="top_logprobs")
        choice, names = body.tool_choice, [tool.function.name for tool in body.tools or ()]
        if isinstance(choice, NamedTool) and choice.function.name not in names:
            raise ApiError(400, f"tool_choice: no tool is called {choice.function.name!r}", param="tool_choice")
        if choice == "required" and not names:
            raise ApiError(400, "tool_choice: required, but there are no tools", param="tool_choice")
        prompt, beginning = await asyncio.to_thread(s.prompt_of, body), ""
        if must := choice == "required" or isinstance(choice, NamedTool):
            beginning = forced(s.form, choice.function.name if isinstance(choice, NamedTool) else None)
            prompt = prompt + await asyncio.to_thread(s.tokenizer.encode_trusted, beginning)
        logprobs = (body.top_logprobs or 0) if body.logprobs else -1
        tools = bool(names) and choice != "none"
        choices = s.choices([prompt], body, logprobs, tools, beginning)
        only_call = tools and (body.parallel_tool_calls is False or must)
        head = self._head("chatcmpl", "chat.completion")
        if body.stream:
            return await self._stream(_chat_chunks(s, choices, head, body, only_call))
        deltas = await _unless_gone(request, _collect(s.run(choices, only_call)))
        return _json(head | _whole_chat(s, choices, deltas, body)) if deltas is not None else Response(status_code=499)

    async def completions(self, body: CompletionRequest, request: Request) -> Response:
        """The continuation of a plain text."""
        s = self.service
        s.check_model(body.model)
        if body.echo and body.logprobs is not None:
            raise ApiError(400, "echo with logprobs is not implemented", param="echo")
        given = [body.prompt] if isinstance(body.prompt, str) or isinstance(body.prompt[0], int) else body.prompt
        prompts = [await asyncio.to_thread(s.encoded, p) if isinstance(p, str) else list(p) for p in given]  # type: ignore[arg-type]
        bos = s.tokenizer.bos_id if s.tokenizer.settings.get("add_bos_token") else None
        prompts = [
            [bos, *p] if bos is not None and isinstance(g, str) else p for p, g in zip(prompts, given, strict=True)
        ]
        choices = s.choices(prompts, body, -1 if body.logprobs is None else body.logprobs)
        said = [p if isinstance(p, str) else s.tokenizer.decode(p) for p in given] if body.echo else [""] * len(prompts)  # type: ignore[arg-type]
        echoes = [text for text in said for _ in range(body.n or 1)]
        head = self._head("cmpl", "text_completion")
        if body.stream:
            return await self._stream(_text_chunks(s, choices, head, body, echoes))
        deltas = await _unless_gone(request, _collect(s.run(choices)))
        return (
            _json(head | _whole_text(s, choices, deltas, body, echoes))
            if deltas is not None
            else Response(status_code=499)
        )

    def _head(self, prefix: str, kind: str) -> dict[str, Any]:
        name = f"{prefix}-{secrets.token_hex(12)}"
        return {"id": name, "object": kind, "created": int(time.time()), "model": self.service.name}

    async def _stream(self, events: AsyncIterator[dict[str, Any]]) -> Response:
        first = await anext(events)  # a request that cannot be queued gets its status
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(_sse(first, events), media_type="text/event-stream", headers=headers)


def _json(value: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), status, media_type="application/json")


async def _sse(first: dict[str, Any], events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    """Server-sent events; an error in the middle is an event too."""
    try:
        yield b"data: " + json.dumps(first).encode() + b"\n\n"
        async for event in events:
            yield b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
    except ApiError as e:
        yield b"data: " + json.dumps(e.body).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


async def _collect(deltas: AsyncIterator[Delta]) -> list[Delta]:
    return [delta async for delta in deltas]


async def _unless_gone(request: Request, work: Coroutine[Any, Any, list[Delta]]) -> list[Delta] | None:
    """The result of the work; None, and the work is cancelled, if the client goes away before."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for future in (task, watch):
            future.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await future


def _usage(choices: Sequence[Choice]) -> dict[str, Any]:
    """Tokens of prompts, each once, and of answers."""
    prompts = {id(choice.job.prompt): choice.job for choice in choices}.values()
    prompt, answer = sum(len(job.prompt) for job in prompts), sum(choice.tokens for choice in choices)
    cached = {"cached_tokens": sum(job.reused for job in prompts)}
    return {
        "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer,
        "prompt_tokens_details": cached,
    }  # fmt: skip


def _gains(delta: Delta) -> Iterator[dict[str, Any]]:
    """The `delta` objects of what a chat answer gained."""
    for part in delta.parts:
        if part.kind == "call":
            yield {"tool_calls": [{"index": delta.choice.calls, **_tool_call(part.name, part.text)}]}
            delta.choice.calls += 1
        else:
            yield {"content" if part.kind == "content" else "reasoning_content": part.text}


def _tool_call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def _chat_logprobs(service: Service, delta: Delta) -> dict[str, Any] | None:
    if delta.choice.job.sampling.logprobs < 0:
        return None
    content = []
    for token in delta.tokens:
        assert token.id is not None
        top = [service.logprob(i, p) for i, p in token.top]
        content.append(service.logprob(token.id, token.logprob) | {"top_logprobs": top})
    return {"content": content}


async def _chat_chunks(
    service: Service, choices: Sequence[Choice], head: dict[str, Any], body: ChatRequest, only_call: bool
) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a streamed chat answer; the first ones come as soon as the request is queued."""
    head = head | {"object": "chat.completion.chunk"}
    usage = {"usage": None} if body.stream_options and body.stream_options.include_usage else {}

    def chunk(choice: Choice, delta: dict[str, Any], logprobs: Any = None, finish: str | None = None) -> dict[str, Any]:
        one = {"index": choice.index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return head | {"choices": [one]} | usage

    async with contextlib.aclosing(service.run(choices, only_call)) as deltas:
        await anext(deltas)
        for choice in choices:
            yield chunk(choice, {"role": "assistant", "content": ""})
        async for delta in deltas:
            logprobs, gains = _chat_logprobs(service, delta), list(_gains(delta))
            for at, gained in enumerate(gains or ([{}] if logprobs else [])):
                yield chunk(delta.choice, gained, logprobs if at == 0 else None)
            if delta.finish:
                yield chunk(delta.choice, {}, finish=delta.finish)
    if usage:
        yield head | {"choices": [], "usage": _usage(choices)}


def _whole_chat(
    service: Service, choices: Sequence[Choice], deltas: Sequence[Delta], body: ChatRequest
) -> dict[str, Any]:
    """A chat answer that is not streamed."""
    found = []
    for choice in choices:
        own = [delta for delta in deltas if delta.choice is choice]
        parts = [part for delta in own for part in delta.parts]
        text = {kind: "".join(p.text for p in parts if p.kind == kind) for kind in ("content", "reasoning")}
        calls = [_tool_call(p.name, p.text) for p in parts if p.kind == "call"]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text["content"] if text["content"] or not calls else None,
        }
        message |= {"reasoning_content": text["reasoning"]} if text["reasoning"] else {}
        message |= {"tool_calls": calls} if calls else {}
        logprobs = None
        if body.logprobs:
            each = [_chat_logprobs(service, delta) for delta in own]
            logprobs = {"content": [entry for found in each if found for entry in found["content"]]}
        found.append({"index": choice.index, "message": message, "logprobs": logprobs, "finish_reason": choice.finish})
    return {"choices": found, "usage": _usage(choices)}


def _text_of(delta: Delta) -> str:
    return "".join(part.text for part in delta.parts)


def _text_logprobs(service: Service, choice: Choice, tokens: Sequence[Any], offset: int) -> dict[str, Any] | None:
    if choice.job.sampling.logprobs < 0:
        return None
    texts = [service.tokenizer.decode([token.id]) for token in tokens]
    tops = [{service.tokenizer.decode([i]): p for i, p in reversed(token.top)} for token in tokens]
    offsets = [offset + sum(map(len, texts[:at])) for at in range(len(texts))]
    return {
        "tokens": texts,
        "token_logprobs": [t.logprob for t in tokens],
        "top_logprobs": tops,
        "text_offset": offsets,
    }


async def _text_chunks(
    service: Service, choices: Sequence[Choice], head: dict[str, Any], body: CompletionRequest, echoes: Sequence[str]
) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a streamed continuation."""
    usage = {"usage": None} if body.stream_options and body.stream_options.include_usage else {}
    offsets = [len(echo) for echo in echoes]

    def chunk(choice: Choice, text: str, logprobs: Any = None, finish: str | None = None) -> dict[str, Any]:
        one = {"index": choice.index, "text": text, "logprobs": logprobs, "finish_reason": finish}
        return head | {"choices": [one]} | usage

    async with contextlib.aclosing(service.run(choices)) as deltas:
        await anext(deltas)
        for choice, echo in zip(choices, echoes, strict=True):
            yield chunk(choice, echo)
        async for delta in deltas:
            text, at = _text_of(delta), delta.choice.index
            yield chunk(
                delta.choice, text, _text_logprobs(service, delta.choice, delta.tokens, offsets[at]), delta.finish
            )
            offsets[at] += len(text)
    if usage:
        yield head | {"choices": [], "usage": _usage(choices)}


def _whole_text(
    service: Service, choices: Sequence[Choice], deltas: Sequence[Delta], body: CompletionRequest, echoes: Sequence[str]
) -> dict[str, Any]:
    """A continuation that is not streamed."""
    found = []
    for choice, echo in zip(choices, echoes, strict=True):
        own = [delta for delta in deltas if delta.choice is choice]
        tokens = [token for delta in own for token in delta.tokens]
        logprobs = _text_logprobs(service, choice, tokens, len(echo))
        text = echo + "".join(map(_text_of, own))
        found.append({"index": choice.index, "text": text, "logprobs": logprobs, "finish_reason": choice.finish})
    return {"choices": found, "usage": _usage(choices)}


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which waits for the head of a request only so long and only for so many bytes."""

    def connection_made(self, transport: Any) -> None:
        """A client connects."""
        super().connection_made(transport)
        self._await_head()

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._too_late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def data_received(self, data: bytes) -> None:
        """Bytes arrive."""
        super().data_received(data)
        self._head_bytes += len(data)
        if not self._too_late.cancelled() and self._head_bytes > HEAD_BYTES:
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The head of a request is complete."""
        self._too_late.cancel()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """A response is sent; the connection may bring another request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._too_late.cancel()
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._too_late.cancel()
        super().connection_lost(exc)


def main(argv: Sequence[str], prog: str = "python -m train.serve") -> int:
    """Serve until Ctrl-C; returns the exit code."""
    config = flags.built(ServeConfig, flags.given(ServeConfig, prog, __doc__, argv))
    if config.host not in LOOPBACK and not (config.api_key or os.environ.get("DATAKIT_API_KEY")):
        raise UsageError(f"--host {config.host} lets other machines in: give --api-key or DATAKIT_API_KEY too")
    listening = _listen(config)
    service = Service.of(config)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(
        f"{service.name}: chat on http://{shown}:{port}/ or give http://{shown}:{port}/v1 to any OpenAI client",
        flush=True,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            application(service),
            http=PatientProtocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=config.max_clients,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=5,
        )  # fmt: skip
    )
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
        raise UsageError(
            f"cannot listen on {config.host}:{config.port} ({e.strerror}); give another --port or --host"
        ) from None
    return listening


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
