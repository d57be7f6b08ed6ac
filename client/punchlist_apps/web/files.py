"""Serves the page's static files, which contain no data and don't need a token."""

import gzip
import hashlib
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from punchlist_apps.common.http.problem import Refused

PAGE = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}


class Files:
    """Files in a folder and its subfolder `built`, by name. Scripts and styles are served only from `built`.

    Args:
        folder: Path of the folder. Its files are read once, at startup: scripts name each other by their content, so
            an upgrade must not mix two versions of the page.
    """

    def __init__(self, folder: Path = PAGE) -> None:
        static = [path for path in folder.glob("*") if path.suffix in _TYPES and path.suffix not in (".css", ".js")]
        built = [path for path in (folder / "built").glob("*") if path.suffix in _TYPES]
        self._files = {path.name: path.read_bytes() for path in (*static, *built)}

    async def get_index(self, request: Request) -> Response:
        return self._serve(request, "index.html")

    async def get_chat(self, request: Request) -> Response:
        """Redirect the chat's earlier address to its screen, which has the thread and the list behind `#`."""
        thread, name = (quote(request.query_params.get(key, ""), safe="") for key in ("thread", "list"))
        return Response(status_code=307, headers={"location": f"/#/chat/{thread}?list={name}"})

    async def get_file(self, request: Request) -> Response:
        return self._serve(request, request.path_params["name"])

    def _serve(self, request: Request, name: str) -> Response:
        content = self._files.get(name)
        if content is None:
            raise Refused("no_such_path")
        is_gzipped = "gzip" in request.headers.get("accept-encoding", "")
        tag = hashlib.sha256(content).hexdigest()[:16] + ("-gzip" if is_gzipped else "")
        headers = {"etag": f'"{tag}"', "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        if is_gzipped:
            content = gzip.compress(content, mtime=0)
            headers["content-encoding"] = "gzip"
        return Response(content, headers=headers, media_type=_TYPES[Path(name).suffix])
