"""One page on this machine alone: an address nobody can guess, on 127.0.0.1, until Ctrl-C."""

import secrets
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class PageServer(ThreadingHTTPServer):
    """Serves one file under a random token; every other address, and every other name of this machine, is refused.

    The name matters: a page elsewhere may call this machine by a name of its own, and so would reach what is here.
    """

    daemon_threads = True

    def __init__(self, page: Path):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.page, self.path = page, f"/{secrets.token_urlsafe(18)}/"
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.address = f"http://{self.host}{self.path}"


class _Answers(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        known = secrets.compare_digest(self.path.encode(), self.server.path.encode())
        if not known or self.headers.get("Host") != self.server.host:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(self.server.page.stat().st_size))
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        with self.server.page.open("rb") as file:
            shutil.copyfileobj(file, self.wfile)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the address is a secret, and the terminal is the reader's."""
