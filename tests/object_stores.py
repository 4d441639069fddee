"""Object stores for tests: real servers on this machine, and a proxy before them that breaks connections."""

import email.utils
import hashlib
import http.client
import json
import socketserver
import threading
from collections.abc import Callable
from datetime import datetime
from html import escape
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

Fault = Callable[[str, str], str]
"""(method, path) of a request -> "" to pass it on, "503", "429", "403 SomeCode", "cut" (no answer), "late" (done, but
the answer is lost), "half" (half of the body, then the end), "wrong" (a byte of the body changed), "sleep"."""


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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> bytes:
        """What was sent with the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response_only(status)
        for name, value in ({"Content_Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _ProxyHandler(_Handler):
    server: Proxy

    def _pass_on(self) -> None:
        fault = self.server.fault(self.command, self.path)
        self.server.seen.append((self.command, self.path, fault))
        body = self.body()
        if fault[:3].isdigit():
            code = fault[4:] or "SlowDown"
            self._answer(int(fault[:3]), {}, f"<Error><Code>{code}</Code></Error>".encode())
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


class GoogleXml(Server):
    """The XML API of Google Cloud Storage, as far as obstore needs it, and the conditions of writes, before an emulator
    that has the JSON API alone and heeds no condition."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.removeprefix("http://")
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _XmlHandler)


class _XmlHandler(_Handler):
    server: GoogleXml

    def _ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found

    def _object(self) -> None:
        path, _, query = self.path.partition("?")
        bucket, _, name = path[1:].partition("/")
        place = f"/storage/v1/b/{bucket}/o/{quote(unquote(name), safe='')}"
        body = self.body()
        if not name:
            self._list(bucket, query)
        elif self.command == "PUT":
            with self.server.lock:
                self._put(bucket, place, unquote(name), body)
        elif self.command == "DELETE":
            status, _, _ = self._ask("DELETE", place)
            self._say(204 if status in (200, 204) else status)
        else:
            status, _, found = self._ask("GET", place)
            if status != 200:
                self._say(status)
                return
            about, range_ = json.loads(found), self.headers.get("range", "")
            headers = self._tags(about) | {"Content_Type": "application/octet-stream"}
            if self.command == "HEAD":
                self._say(200, **headers | {"Content_Length": about["size"]})
                return
            status, sent, found = self._ask("GET", f"{place}?alt=media", **({"Range": range_} if range_ else {}))
            headers |= {"Content_Range": sent["Content-Range"]} if "Content-Range" in sent else {}
            self._say(status, found, **headers)

    def _put(self, bucket: str, place: str, name: str, body: bytes) -> None:
        if wanted := self.headers.get("x-goog-if-generation-match"):
            status, _, found = self._ask("GET", place)
            if wanted != ("0" if status == 404 else json.loads(found)["generation"]):
                self._say(412)
                return
        if source := self.headers.get("x-goog-copy-source"):
            other, _, key = source.partition("/")
            source = f"/storage/v1/b/{other}/o/{quote(unquote(key), safe='')}"
            status, _, found = self._ask("POST", f"{source}/rewriteTo{place[11:]}")
            about = json.loads(found).get("resource", {}) if status == 200 else {}
        else:
            asked = urlencode({"uploadType": "media", "name": name})
            status, _, found = self._ask("POST", f"/upload/storage/v1/b/{bucket}/o?{asked}", body)
            about = json.loads(found) if status == 200 else {}
        self._say(status, **self._tags(about) if about else {})

    def _list(self, bucket: str, query: str) -> None:
        asked = dict(parse_qsl(query))
        _, _, found = self._ask(
            "GET", f"/storage/v1/b/{bucket}/o?{urlencode({'prefix': asked.get('prefix', ''), 'maxResults': '100000'})}"
        )
        entries = "".join(
            f"<Contents><Key>{escape(o['name'])}</Key><Size>{o['size']}</Size><ETag>{o['generation']}</ETag>"
            f"<LastModified>{o['updated']}</LastModified></Contents>" for o in json.loads(found).get("items", [])
        )  # fmt: skip
        self._say(200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())

    @staticmethod
    def _tags(about: dict[str, Any]) -> dict[str, str]:
        when = parsedate_from_iso(about["updated"])
        return {"ETag": about["generation"], "x_goog_generation": about["generation"], "Last_Modified": when}

    do_GET = do_PUT = do_HEAD = do_DELETE = _object


def parsedate_from_iso(text: str) -> str:
    """A date as HTTP headers have it."""
    return email.utils.format_datetime(datetime.fromisoformat(text), usegmt=False).replace("+0000", "GMT")


class Hub(Server):
    """What `hf://datasets/me/mine` and a model `me/mine` need of the Hugging Face Hub: trees, and files in ranges."""

    def __init__(self, files: dict[str, bytes], fault: Fault = lambda *_: "") -> None:
        self.files, self.fault = files, fault
        self.seen: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", 0), _HubHandler)


class _HubHandler(_Handler):
    server: Hub

    def _entry(self, path: str) -> list[dict[str, Any]]:
        """What the Hub says of a path: a file, a folder, or nothing."""
        files = self.server.files
        if path in files:
            digest = hashlib.sha1(files[path]).hexdigest()
            return [{"type": "file", "oid": digest, "size": len(files[path]), "path": path}]
        inside = any(name.startswith(f"{path}/") for name in files)
        return [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path}] if inside else []

    def _hub(self) -> None:
        place, _, query = self.path.partition("?")
        asked, recursive = unquote(place), "recursive=true" in query.lower()
        body = self.body()
        self.server.seen.append((self.command, asked))
        if self.server.fault(self.command, asked) == "503":
            self._say(503, b"")
            return
        asked = asked.replace("/api/models/", "/api/datasets/").replace("f" * 40, "main")
        asked = f"/datasets{asked}" if asked.startswith("/me/") else asked
        api, resolve = "/api/datasets/me/mine", "/datasets/me/mine/resolve/main/"
        if asked.startswith(f"{api}/tree/main"):
            folder = asked.removeprefix(f"{api}/tree/main").strip("/")
            below = [n for n in self.server.files if not folder or n.startswith(f"{folder}/")]
            depth = folder.count("/") + 2 if folder else 1
            depths = range(depth, 99 if recursive else depth + 1)
            paths = sorted({"/".join(name.split("/")[:d]) for name in below for d in depths})
            found = json.dumps([e for path in paths for e in self._entry(path)]).encode()
            self._say(200 if below else 404, found, Content_Type="application/json")
        elif asked.startswith(f"{api}/paths-info/"):
            given = json.loads(body) if body.startswith(b"{") else dict(parse_qsl(body.decode()))
            paths = given["paths"] if isinstance(given["paths"], list) else [given["paths"]]
            found = json.dumps([e for path in paths for e in self._entry(path)]).encode()
            self._say(200, found, Content_Type="application/json")
        elif asked in (api, f"{api}/revision/main"):
            self._say(200, json.dumps({"id": "me/mine", "sha": "f" * 40}).encode(), Content_Type="application/json")
        elif asked.startswith(resolve) and (data := self.server.files.get(asked.removeprefix(resolve))) is not None:
            about = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X_Repo_Commit": "f" * 40, "Accept_Ranges": "bytes"}
            if (part := self.headers.get("Range", "")).startswith("bytes="):
                begin, _, end = part.removeprefix("bytes=").partition("-")
                stop = min(int(end) + 1 if end else len(data), len(data))
                about["Content_Range"] = f"bytes {begin}-{stop - 1}/{len(data)}"
                self._say(206, data[int(begin) : stop], **about)
            else:
                self._say(200, data, **about)
        else:
            self._say(404, b"{}", X_Error_Code="EntryNotFound")

    do_GET = do_POST = do_HEAD = _hub
