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
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from datakit.errors import UsageError
from train import flags
from train.serve.answer_parts import AnswerPart, forced
from train.serve.requests import ChatRequest, CompletionRequest, ErrorBody, Generation, TokenizeRequest, Tool
from train.serve.service import ApiError, Choice, Delta, ServeConfig, Service

PAGE = Path(__file__).with_name("page")
BODY_SECONDS = 30.0
"""Time for the body of a request; slower clients are cut off."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
    app.add_exception_handler(ApiError, lambda request, e: e.response())
    app.add_exception_handler(RequestValidationError, lambda request, e: _unfit(e).response())
    app.add_exception_handler(HTTPException, lambda request, e: _http_error(request, e).response())
    app.add_exception_handler(Exception, lambda request, e: ApiError(500, f"{type(e).__name__}: see log").response())
    api = Api(service)
    add = app.add_api_route
    add("/v1/models", api.models, methods=["GET"], operation_id="models")
    add("/v1/models/{name:path}", api.model, methods=["GET"], operation_id="model")
    add("/v1/chat/completions", api.chat, methods=["POST"], operation_id="chat")
    add("/v1/completions", api.completions, methods=["POST"], operation_id="completions")
    add("/v1/tokenize", api.tokenize, methods=["POST"], operation_id="tokenize")
    add("/tokenize", api.tokenize, methods=["POST"], include_in_schema=False)  # where vLLM has it
    add("/health", api.health, methods=["GET"], operation_id="health")
    add("/metrics", api.metrics, methods=["GET"], operation_id="metrics", response_class=PlainTextResponse)
    add("/", lambda: FileResponse(PAGE / "index.html"), methods=["GET"], include_in_schema=False)
    app.mount("/page", StaticFiles(directory=PAGE))
    guarded: ASGIApp = Guard(app, service)
    if service.config.allow_origin:
        guarded = CORSMiddleware(guarded, service.config.allow_origin, allow_methods=["*"], allow_headers=["*"])
    return guarded


def _unfit(e: Exception) -> ApiError:
    """The first thing that is wrong with a body."""
    assert isinstance(e, RequestValidationError)
    first = e.errors()[0]
    at = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is no JSON: {first['ctx']['error']}")
    message = f"{at}: {first['msg']}" if at else "expected a JSON object with content-type application/json"
    return ApiError(400, message, param=at or None)


def _http_error(request: Request, e: Exception) -> ApiError:
    assert isinstance(e, HTTPException)
    code = "not_found" if e.status_code == 404 else None
    return ApiError(e.status_code, f"{request.method} {request.url.path}: {e.detail}", code=code)


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
                path = getattr(scope.get("route"), "path", "other")
                self.service.metrics.requests.labels(path, str(message["status"])).inc()
                rules = [(b"x-content-type-options", b"nosniff"), (b"content-security-policy", POLICY)]
                message["headers"] = [*message["headers"], *rules]
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
        if not self.key or not scope["path"].startswith(("/v1/", "/tokenize")):
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self.key):
            message = "the key is missing or wrong; send it as `Authorization: Bearer KEY`"
            raise ApiError(401, message, code="invalid_api_key")

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
        """200 while the server can generate, 503 if its thread has died."""
        if not self.service.batcher.alive:
            raise ApiError(503, "the generating thread has died; start the server again")
        return _json({"status": "ok"})

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
        choices = s.choices([prompt], body, (body.top_logprobs or 0) if body.logprobs else -1, bool(tools), beginning)
        return await self._answer(request, body, choices, Chat(s), must or body.parallel_tool_calls is False)

    async def completions(self, body: CompletionRequest, request: Request) -> Response:
        """The continuation of plain texts."""
        s = self.service
        s.check_model(body.model)
        one = isinstance(body.prompt, str) or isinstance(body.prompt[0], int)
        given: Any = [body.prompt] if one else body.prompt
        prompts = [await asyncio.to_thread(s.encoded, p) if isinstance(p, str) else list(p) for p in given]
        choices = s.choices(prompts, body, -1 if body.logprobs is None else body.logprobs)
        return await self._answer(request, body, choices, Text(s), False)

    async def _answer(
        self, request: Request, body: Generation, choices: Sequence[Choice], shape: "Chat | Text", only_call: bool
    ) -> Response:
        """The response of a generation, streamed or whole."""
        name = f"{shape.prefix}-{secrets.token_hex(12)}"
        head = {"id": name, "object": shape.kind, "created": int(time.time()), "model": self.service.name}
        steps = self.service.run(choices, only_call)
        if body.stream:
            usage = bool(body.stream_options and body.stream_options.include_usage)
            events = _chunks(steps, choices, head | {"object": shape.chunk_kind}, shape, usage)
            first = await anext(events)  # so that a request that cannot be queued gets its status
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            return StreamingResponse(_sse(first, events), media_type="text/event-stream", headers=headers)
        deltas = list[Delta]()
        async with contextlib.aclosing(steps):  # type: ignore[type-var]
            async for gained in steps:
                deltas += gained
                if await request.is_disconnected():
                    return Response(status_code=499)
        own = [[delta for delta in deltas if delta.choice is choice] for choice in choices]
        found = [
            {"index": c.index, **shape.whole(c, o), "finish_reason": c.finish}
            for c, o in zip(choices, own, strict=True)
        ]
        return _json(head | {"choices": found, "usage": _usage(choices)})


class Chat:
    """The form of chat answers."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self, service: Service) -> None:
        self.service = service

    def begin(self) -> dict[str, Any]:
        """The first chunk of an answer."""
        return {"delta": {"role": "assistant", "content": ""}, "logprobs": None}

    def chunks(self, delta: Delta) -> list[dict[str, Any]]:
        """What an answer gained, a chunk for each part."""
        logprobs, at = self._logprobs([delta]), delta.choice.calls - sum(p.kind == "call" for p in delta.parts)
        found: list[dict[str, Any]] = []
        for part in delta.parts:
            if part.kind == "call":
                gained: dict[str, Any] = {"tool_calls": [{"index": at, **_tool_call(part)}]}
                at += 1
            else:
                gained = {"content" if part.kind == "content" else "reasoning_content": part.text}
            found.append({"delta": gained, "logprobs": None})
        if logprobs or delta.choice.finish:
            found = found or [{"delta": {}, "logprobs": None}]
            found[0]["logprobs"] = logprobs
        return found

    def whole(self, choice: Choice, deltas: Sequence[Delta]) -> dict[str, Any]:
        """An answer that is not streamed."""
        parts = [part for delta in deltas for part in delta.parts]
        text = {kind: "".join(p.text for p in parts if p.kind == kind) for kind in ("content", "reasoning")}
        calls = [_tool_call(part) for part in parts if part.kind == "call"]
        message: dict[str, Any] = {"role": "assistant", "content": text["content"] or (None if calls else "")}
        message |= {"reasoning_content": text["reasoning"]} if text["reasoning"] else {}
        message |= {"tool_calls": calls} if calls else {}
        return {"message": message, "logprobs": self._logprobs(deltas)}

    def _logprobs(self, deltas: Sequence[Delta]) -> dict[str, Any] | None:
        if deltas[0].choice.logprobs < 0:
            return None
        one = self.service.logprob
        tokens = [token for delta in deltas for token in delta.tokens]
        return {"content": [one(t.id, t.logprob) | {"top_logprobs": [one(*top) for top in t.top]} for t in tokens]}


class Text:
    """The form of continuations of plain text."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def __init__(self, service: Service) -> None:
        self.service, self._offsets = service, dict[int, int]()

    def begin(self) -> dict[str, Any]:
        """The first chunk of an answer."""
        return {"text": "", "logprobs": None}

    def chunks(self, delta: Delta) -> list[dict[str, Any]]:
        """What an answer gained."""
        return [self.whole(delta.choice, [delta])]

    def whole(self, choice: Choice, deltas: Sequence[Delta]) -> dict[str, Any]:
        """Text and log-probabilities of some deltas of an answer."""
        text = "".join(part.text for delta in deltas for part in delta.parts)
        if choice.logprobs < 0:
            return {"text": text, "logprobs": None}
        decode, tokens = self.service.tokenizer.decode, [token for delta in deltas for token in delta.tokens]
        texts, offsets, offset = [decode([token.id]) for token in tokens], [], self._offsets.get(choice.index, 0)
        for piece in texts:
            offsets.append(offset)
            offset += len(piece)
        self._offsets[choice.index] = offset
        tops = [{decode([i]): p for i, p in reversed(token.top)} for token in tokens]
        each = {"tokens": texts, "token_logprobs": [token.logprob for token in tokens]}
        return {"text": text, "logprobs": each | {"top_logprobs": tops, "text_offset": offsets}}


async def _chunks(
    steps: AsyncIterator[list[Delta]], choices: Sequence[Choice], head: dict[str, Any], shape: Chat | Text, usage: bool
) -> AsyncIterator[dict[str, Any]]:
    """The events of a streamed answer; the first ones come as soon as the request is queued."""
    none = {"usage": None} if usage else {}
    async with contextlib.aclosing(steps):  # type: ignore[type-var]
        await anext(steps)
        for choice in choices:
            yield head | {"choices": [{"index": choice.index, **shape.begin(), "finish_reason": None}]} | none
        async for deltas in steps:
            for delta in deltas:
                found = shape.chunks(delta)
                for at, chunk in enumerate(found, 1):
                    finish = delta.choice.finish if at == len(found) else None
                    one = {"index": delta.choice.index, **chunk, "finish_reason": finish}
                    yield head | {"choices": [one]} | none
    if usage:
        yield head | {"choices": [], "usage": _usage(choices)}


async def _sse(first: dict[str, Any], events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    """Server-sent events; an error in the middle is an event too."""
    try:
        yield b"data: " + json.dumps(first).encode() + b"\n\n"
        async for event in events:
            yield b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
    except ApiError as e:
        yield b"data: " + json.dumps(e.body).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _json(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value, ensure_ascii=False).encode(), media_type="application/json")


def _usage(choices: Sequence[Choice]) -> dict[str, Any]:
    """Tokens of prompts, each prompt once, and of answers."""
    jobs = {id(choice.job.prompt): choice.job for choice in choices}.values()
    prompt, answer = sum(len(job.prompt) for job in jobs), sum(choice.tokens for choice in choices)
    found: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return found | {"prompt_tokens_details": {"cached_tokens": sum(job.reused for job in jobs)}}


def _tool_call(part: AnswerPart) -> dict[str, Any]:
    function = {"name": part.name, "arguments": part.text}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


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
