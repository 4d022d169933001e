"""`/ui/`: pages for people. They are static and know nothing but the public interface and a token."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    # What tools say is text: no script of ours may give a string to a parser of HTML.
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # A new release brings new files under the same names.
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the dashboard; `etag` is of its content."""

    content: bytes
    media_type: str
    etag: str


class Dashboard:
    """The files, read once. A path that is none of their names is none: nothing on the disk is looked up."""

    def __init__(self) -> None:
        folder = files("pml.streams.gateway") / "ui"
        names = sorted(file.name for file in folder.iterdir() if _kind(file.name) in _TYPES)
        self.assets = {name: _asset(name, (folder / name).read_bytes()) for name in names}

    async def show(self, request: Request) -> Response:
        """One file; the page itself where none is named."""
        asset = self.assets.get(str(request.path_params["name"]) or INDEX)
        if asset is None:
            raise HTTPException(404, "the dashboard has no such file")
        headers = {**HEADERS, "etag": asset.etag}
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, headers=headers, media_type=asset.media_type)

    async def enter(self, request: Request) -> Response:
        """From `/ui` to `/ui/`, below which its files are."""
        return RedirectResponse("ui/", headers=HEADERS)


def _asset(name: str, content: bytes) -> Asset:
    etag = blake2b(content, digest_size=16).hexdigest()
    return Asset(content, _TYPES[_kind(name)], f'"{etag}"')


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
