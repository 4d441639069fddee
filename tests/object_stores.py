"""Servers of object stores on this machine, which may break the requests that a test names."""

import hashlib
import io
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

SECRET = "a-secret-that-nobody-may-read"
Fault = Callable[[str, str], str]
"""(method, path) of a request -> "" to answer it, "503", "429", "403 SomeCode", "cut" (no answer), "late" (done, but
the answer is lost), "half" (half of the body, then the end), "wrong" (a byte of the body changed), "sleep"."""


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """A client that goes away is what the tests are about."""


class Server:
    """A WSGI application on a free port, in threads of this process, with faults before it."""

    def __init__(self, app: Callable[..., Iterable[bytes]], fault: Fault = lambda *_: "") -> None:
        self.app, self.fault = app, fault
        self.seen: list[tuple[str, str, str]] = []
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> "Server":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], unquote(environ["REQUEST_URI"])
        fault = self.fault(method, path)
        self.seen.append((method, path, fault))
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        if fault[:3].isdigit():
            error = f"<Error><Code>{fault[4:] or 'SlowDown'}</Code></Error>"
            return Response(error, int(fault[:3]))(environ, start)
        time.sleep(0.3 if fault == "sleep" else 0)
        answer = None if fault == "cut" else Response.from_app(self.app, environ, buffered=True)
        if answer is None or fault == "late":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        if fault in ("wrong", "half") and (body := answer.get_data()):  # Content-Length stays
            answer.response = [body[:-1] + bytes([body[-1] ^ 1]) if fault == "wrong" else body[: len(body) // 2]]
        return answer(environ, start)


def use(monkeypatch: pytest.MonkeyPatch, url: str, mirror: Path) -> None:
    """Let this process, and those that it starts, find an S3 server there, with credentials for it."""
    values = {
        "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url, "DATAKIT_MIRROR": str(mirror),
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "DATAKIT_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def _sent(request: Request, data: bytes, headers: dict[str, str]) -> Response:
    """An object, or the range of it that was asked for."""
    headers |= {"Content-Type": "application/octet-stream"}
    return Response(data, headers=headers).make_conditional(request, accept_ranges=True, complete_length=len(data))


class Google:
    """The XML API of Google Cloud Storage, as far as obstore needs it, with the conditions of writes; one bucket."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        """By key: bytes and generation."""
        self._generations, self._lock = itertools.count(1), threading.Lock()

    @Request.application
    def __call__(self, request: Request) -> Response:
        key, when = request.path[1:].partition("/")[2], "Thu, 01 Jan 2026 00:00:00 GMT"
        with self._lock:
            data, generation = self._objects.get(key, (b"", "0"))
            if not key:
                entries = "".join(
                    f"<Contents><Key>{escape(name)}</Key><Size>{len(found)}</Size><ETag>{tag}</ETag>"
                    f"<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
                    for name, (found, tag) in self._objects.items() if name.startswith(request.args.get("prefix", ""))
                )  # fmt: skip
                return Response(f"<ListBucketResult>{entries}</ListBucketResult>")
            if request.method == "PUT":
                if request.headers.get("x-goog-if-generation-match", generation) != generation:
                    return Response(status=412)
                data, generation = b"", str(next(self._generations))
                self._objects[key] = request.get_data(), generation
            elif request.method == "DELETE":
                return Response(status=204 if self._objects.pop(key, None) else 404)
        if generation == "0":
            return Response(status=404)
        return _sent(request, data, {"ETag": generation, "x-goog-generation": generation, "Last-Modified": when})


class Hub:
    """What `hf://datasets/me/mine` and a model `me/mine` need of the Hugging Face Hub: trees, and files in ranges."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def _entry(self, path: str) -> list[dict[str, Any]]:
        """What the Hub says of a path: a file, a folder, or nothing."""
        if (data := self.files.get(path)) is not None:
            return [{"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}]
        inside = any(name.startswith(f"{path}/") for name in self.files)
        return [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path}] if inside else []

    @Request.application
    def __call__(self, request: Request) -> Response:
        asked = request.path.replace("/api/models/", "/api/datasets/").replace("f" * 40, "main")
        asked = f"/datasets{asked}" if asked.startswith("/me/") else asked
        api, resolve = "/api/datasets/me/mine", "/datasets/me/mine/resolve/main/"
        if asked in (api, f"{api}/revision/main"):
            return Response(json.dumps({"id": "me/mine", "sha": "f" * 40}), mimetype="application/json")
        if asked.startswith(f"{api}/tree/main"):
            folder = asked.removeprefix(f"{api}/tree/main").strip("/")
            below = [n for n in self.files if not folder or n.startswith(f"{folder}/")]
            depth = folder.count("/") + 2 if folder else 1
            depths = range(depth, 99 if request.args.get("recursive", "").lower() == "true" else depth + 1)
            paths = sorted({"/".join(name.split("/")[:d]) for name in below for d in depths})
        elif asked.startswith(f"{api}/paths-info/"):
            paths = request.json["paths"] if request.is_json else request.form.getlist("paths")
        elif asked.startswith(resolve) and (data := self.files.get(asked.removeprefix(resolve))) is not None:
            return _sent(request, data, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": "f" * 40})
        else:
            return Response("{}", 404, {"X-Error-Code": "EntryNotFound"})
        found = json.dumps([entry for path in paths for entry in self._entry(path)])
        return Response(found, 200 if paths else 404, mimetype="application/json")
