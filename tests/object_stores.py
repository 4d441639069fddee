"""Object stores for tests: real servers on this machine, and a proxy before them that breaks connections."""

import http.client
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

Fault = Callable[[str, str], str]
"""(method, path) of a request -> "" to pass it on, "503", "429", "cut" (no answer), "late" (done, but the answer is
lost), "half" (half of the body, then the end), "wrong" (a byte of the body changed), "sleep"."""


class Server(socketserver.ThreadingTCPServer):
    """A server on a free port, in threads of this process."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what the tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> "Server":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Proxy(Server):
    """Passes requests on to another server, except for those that `fault` names."""

    def __init__(self, upstream: str, fault: Fault) -> None:
        self.upstream, self.fault = upstream.removeprefix("http://"), fault
        self.seen: list[tuple[str, str, str]] = []
        super().__init__(("127.0.0.1", 0), _ProxyHandler)


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, *_: object) -> None:
        pass

    def _pass_on(self) -> None:
        fault = self.server.fault(self.command, self.path)
        self.server.seen.append((self.command, self.path, fault))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if fault in ("503", "429"):
            self._answer(int(fault), {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        if fault == "cut":
            self._end()
            return
        if fault == "sleep":
            threading.Event().wait(0.3)
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))  # with its Host: that is signed
        answer = connection.getresponse()
        content, headers = answer.read(), dict(answer.getheaders())
        connection.close()
        if fault == "late":
            self._end()
            return
        if fault == "wrong" and content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        self._answer(answer.status, headers, content, half=fault == "half")

    def _answer(self, status: int, headers: dict[str, str], content: bytes, *, half: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        empty = self.command == "HEAD"
        size = next((v for n, v in headers.items() if n.lower() == "content-length"), "0") if empty else len(content)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        if not empty:
            self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self._end()

    def _end(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on
