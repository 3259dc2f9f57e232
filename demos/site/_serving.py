"""Site · Serving: the pages, on this machine alone, for a browser that is to run Python."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(SimpleHTTPRequestHandler):
    """A server of files that knows the kinds of a runtime's files, and prints nothing."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".wasm": "application/wasm",  # (a browser compiles it while it comes)
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".whl": "application/zip",
    }

    def log_message(self, *args: Any) -> None:
        """Print no line for a request."""


def listening(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder at 127.0.0.1; OSError if the port is taken."""
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise OSError(f"port {port} cannot be had ({error}): name another, --serve PORT") from None
