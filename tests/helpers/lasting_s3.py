"""moto's S3 server, whose objects survive ``kill -9``: python lasting_s3.py PORT FOLDER

Each change is in a file of the folder before it is answered, and made again at the next start. While the folder has a
file ``errors`` every answer is 503; while it has ``full`` every PUT is refused, as servers without room do.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ERRORS, FULL = "errors", "full"
SECRET = "secret-of-ours"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key-of-ours", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}


class LastingApp:
    """The application, whose changes are one after the other."""

    def __init__(self, app: Callable[..., Iterable[bytes]], folder: Path) -> None:
        self._app, self._folder, self._lock = app, folder, threading.Lock()
        self._changes = (folder / "changes").open("a+b", buffering=0)
        self._changes.seek(0)
        for line in self._changes.read().splitlines(keepends=True):
            if line.endswith(b"\n"):  # else it was killed within it
                change = json.loads(line)
                self._answer(change["environ"], base64.b64decode(change["body"]))
        if not self._changes.tell():
            return
        self._changes.seek(0)
        whole = self._changes.read()
        self._changes.truncate(whole.rfind(b"\n") + 1)

    def __call__(self, environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body, method = environ["wsgi.input"].read(length), environ["REQUEST_METHOD"]
        if len(body) < length:
            return refuse(start, "400 Bad Request", "IncompleteBody")
        if (self._folder / ERRORS).exists():
            return refuse(start, "503 Service Unavailable", "ServiceUnavailable")
        if (self._folder / FULL).exists() and method == "PUT":
            return refuse(start, "507 Insufficient Storage", "XMinioStorageFull")
        plain = {name: one for name, one in environ.items() if isinstance(one, str)}
        with self._lock:
            status, headers, data = self._answer(plain, body)
            if method not in ("GET", "HEAD") and status.startswith("2"):
                change = {"environ": plain, "body": base64.b64encode(body).decode()}
                self._changes.write(json.dumps(change).encode() + b"\n")
        start(status, headers)
        return [data]

    def _answer(self, plain: dict[str, str], body: bytes) -> tuple[str, list[tuple[str, str]], bytes]:
        answer: list[Any] = []
        environ = {**plain, "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr, "wsgi.version": (1, 0)}
        environ |= {"wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False}
        data = b"".join(self._app(environ, lambda *some: answer.extend(some)))
        return answer[0], answer[1], data


def refuse(start: Callable[..., object], status: str, code: str) -> Iterable[bytes]:
    data = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(data)))])
    return [data]


class LastingServer:
    """Its process, on a port of loopback that it keeps."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as bound:
            self.port: int = bound.getsockname()[1]
        self._folder, self._lock = folder, threading.Lock()
        self._start()

    def _start(self) -> None:
        argv = [sys.executable, __file__, str(self.port), str(self._folder)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log)

    def wait(self, limit_s: float = 60.0) -> None:
        """Wait until it answers; RuntimeError if it does not."""
        ends_s = time.monotonic() + limit_s
        while time.monotonic() < ends_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self._folder}: moto's server does not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def revive(self) -> None:
        """Start it if it was killed."""
        with self._lock:
            if self._process.poll() is not None:
                self._start()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def have_trouble(self, kind: str, is_over: bool = False) -> None:
        path = self._folder / kind
        path.unlink(missing_ok=True) if is_over else path.touch()

    def heal(self) -> None:
        self.revive()
        self.go_on()
        for kind in (ERRORS, FULL):
            self.have_trouble(kind, is_over=True)


@contextlib.contextmanager
def bucket_here(folder: Path) -> Iterator[Any]:
    """The bucket ``lab`` on a server of its own; the environment leads there. Yields its file system."""
    import pytest

    for package in ("moto", "s3fs"):
        pytest.importorskip(package)
    fsspec, server = pytest.importorskip("fsspec"), LastingServer(folder)
    try:
        server.wait()
        with pytest.MonkeyPatch.context() as patched:
            for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}"}.items():
                patched.setenv(name, value)
            s3 = fsspec.filesystem("s3", skip_instance_cache=True)
            s3.mkdir("lab", create_parents=True)
            yield s3
    finally:
        server.kill()


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple

    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    os.environ["MOTO_PORT"] = str(port)
    app = LastingApp(DomainDispatcherApplication(create_backend_app), folder)
    run_simple("127.0.0.1", port, app, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main()
