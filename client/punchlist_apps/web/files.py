"""The page's own files: no data in them, so everybody on this machine may have them."""

import gzip
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from punchlist_apps.common.http.problem import Refused

PAGE = Path(__file__).parent / "page"
_INDEX = "index.html"
_CHAT = "chat.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


def is_made_of_sources(built: Path) -> bool:
    """Whether what was built was made of the scripts and styles that stand beside it now."""
    try:
        recorded = (built / "sources.sha256").read_text().strip()
    except OSError:
        return False
    sources = sorted((*built.parent.glob("*.js"), *built.parent.glob("*.css")), key=lambda path: path.name)
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest() == recorded


class Files:
    """Files of one folder, by their names; those in its folder `built` stand in for the sources that they are made of.

    Where the sources were changed since, they are served themselves: `make page` makes what is built anew.

    Args:
        folder: Where they are; what is in it when the server starts is served.
    """

    def __init__(self, folder: Path = PAGE) -> None:
        built = folder / "built"
        folders = [one for one in (folder, *([built] if is_made_of_sources(built) else [])) if one.is_dir()]
        found = [path for one in folders for path in one.iterdir() if path.suffix in _TYPES]
        self._files = {path.name: path for path in found}

    async def index(self, request: Request) -> Response:
        """The page itself."""
        return self._answer(request, _INDEX)

    async def chat(self, request: Request) -> Response:
        """The page of chats."""
        return self._answer(request, _CHAT)

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        return self._answer(request, request.path_params["name"])

    def _answer(self, request: Request, name: str) -> Response:
        path = self._files.get(name)
        if path is None:
            raise Refused("no_such_path")
        content = path.read_bytes()
        packed = "gzip" in request.headers.get("accept-encoding", "")
        tag = hashlib.sha256(content).hexdigest()[:16] + ("-gzip" if packed else "")
        headers = {"etag": f'"{tag}"', "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        if packed:
            content = gzip.compress(content, mtime=0)
            headers["content-encoding"] = "gzip"
        return Response(content, headers=headers, media_type=_TYPES[path.suffix])
