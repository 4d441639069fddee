"""What stands between the network and the application: keys, hosts, sizes and times."""

import asyncio
import hmac
import os
from collections.abc import Iterator
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from train.serve.service import ApiError, Service

HEAD_SECONDS, HEAD_BYTES, BODY_SECONDS = 15.0, 1 << 16, 30.0
"""Time and size of the head of a request, and time of its body; slower clients are cut off."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may load and ask nothing but this server."""


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
