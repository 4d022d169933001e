"""An MCP server over one folder: five tools that read, two that write, and a log of every call.

    python files_server.py --root DIR [--log FILE] [--latency-ms N]
    python -m pml.deploy.examples.files_server --root DIR [--log FILE] [--latency-ms N]

Every path is relative to the folder and never leaves it. Symbolic links are not followed at all, so that
one file has one path, and a declared touch `files:{path}` is all that a call can reach.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import itertools
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field, JsonValue

from pml.deploy.examples.call_log import CallLog
from pml.deploy.examples.formats import TEXT_MAX_BYTES, Kind, Syntax, kind, parse_json, render

PATH_MAX_CHARACTERS = 1_000
ENTRIES_MAX = 1_000
FILES_MAX = 10_000
MATCHES_MAX = 200
MATCH_MAX_CHARACTERS = 240

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)

RelativePath = Annotated[str, Field(description="Path relative to the folder, with '/'; '.' is the folder.")]
NamePattern = Annotated[str, Field(description="Only names that match, for instance '*.md'.", max_length=200)]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class FileText(BaseModel):
    """A text file."""

    path: str
    text: str
    size_bytes: int
    lines: int


class Entry(BaseModel):
    """One name in a folder. `size_bytes` is 0 for everything but files."""

    name: str
    path: str
    kind: Literal["file", "directory", "link", "other"]
    size_bytes: int


class Listing(BaseModel):
    """What a folder holds, sorted by path."""

    path: str
    entries: list[Entry]
    count: int
    truncated: bool


class Match(BaseModel):
    """A line that holds the text; lines count from 1."""

    path: str
    line: int
    text: str


class Matches(BaseModel):
    """Where a text occurs, folder by folder, each by name and line."""

    path: str
    matches: list[Match]
    count: int
    files_searched: int
    files_skipped: int
    truncated: bool


class Parsed(BaseModel):
    """A JSON document."""

    kind: Kind
    keys: list[str]
    value: JsonValue


class Formatted(BaseModel):
    """A document in its normal form."""

    syntax: Syntax
    text: str
    lines: int


class Written(BaseModel):
    """What a file holds now."""

    path: str
    size_bytes: int
    sha256: str
    created: bool


class Deleted(BaseModel):
    """A file that is gone."""

    path: str
    size_bytes: int


class Folder:
    """The only folder the server reaches."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        if not self.root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root))

    def locate(self, path: str) -> Path:
        """The absolute path of a relative one; ToolError where it would leave the folder."""
        if "\0" in path or len(path) > PATH_MAX_CHARACTERS:
            raise ToolError(f"Invalid path: at most {PATH_MAX_CHARACTERS} characters, none of them NUL.")
        parts = PurePosixPath(path).parts
        if PurePosixPath(path).is_absolute() or ".." in parts:
            raise ToolError(f"Invalid path {path!r}: give a path relative to the folder, without '..'.")
        target = self.root.joinpath(*parts)
        if _resolved(target) != target:
            raise ToolError(f"Permission denied: {path!r} passes through a symbolic link.")
        return target

    def relative(self, target: Path | str) -> str:
        """The path as callers write it."""
        return Path(target).relative_to(self.root).as_posix()

    def file(self, path: str) -> Path:
        """An existing regular file; anything else (a pipe would block for ever) is an error."""
        target = self.locate(path)
        if not target.exists():
            raise ToolError(f"File not found: {path!r}.")
        if not target.is_file():
            raise ToolError(f"Invalid path {path!r}: it is no regular file.")
        return target

    def directory(self, path: str) -> Path:
        """An existing folder."""
        target = self.locate(path)
        if not target.exists():
            raise ToolError(f"Folder not found: {path!r}.")
        if not target.is_dir():
            raise ToolError(f"Invalid path {path!r}: it is no folder.")
        return target

    def walk(self, start: Path) -> Iterator[os.DirEntry[str]]:
        """Everything below a folder, one folder after the other; links are shown and not entered."""
        pending = [start]
        while pending:
            folder = pending.pop()
            try:
                entries = list(_children(folder))
            except FileNotFoundError:
                if folder == start:
                    raise
                continue  # it was deleted since it was found
            yield from entries
            folders = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
            pending.extend(reversed(folders))


class FileTools:
    """The tools; the docstrings are what an agent reads."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)

    def read_file(self, path: RelativePath) -> FileText:
        """Reads a UTF-8 text file of at most 1 MiB."""
        raw = _read(self._folder.file(path))
        if raw is None:
            raise ToolError(f"Invalid file {path!r}: it is larger than {TEXT_MAX_BYTES} bytes.")
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise ToolError(f"Invalid file {path!r}: it is no UTF-8 text.") from None
        return FileText(path=path, text=text, size_bytes=len(raw), lines=len(text.splitlines()))

    def list_dir(self, path: RelativePath, pattern: NamePattern = "*", recursive: bool = False) -> Listing:
        """Lists a folder, sorted by path; `recursive` includes everything below it."""
        start = self._folder.directory(path)
        found = self._folder.walk(start) if recursive else _children(start)
        matching = (entry for entry in found if fnmatchcase(entry.name, pattern))
        present = (known for entry in matching if (known := self._entry(entry)) is not None)
        entries = list(itertools.islice(present, ENTRIES_MAX + 1))
        kept = sorted(entries[:ENTRIES_MAX], key=lambda entry: entry.path)
        return Listing(path=path, entries=kept, count=len(kept), truncated=len(entries) > ENTRIES_MAX)

    def search(
        self,
        path: RelativePath,
        text: Annotated[str, Field(min_length=1, max_length=1_000, description="The text, not a pattern.")],
        pattern: NamePattern = "*",
        ignore_case: bool = False,
    ) -> Matches:
        """Finds the lines that hold a text, in one file or in every text file below a folder."""
        start = self._folder.locate(path)
        files = self._files(start, pattern) if start.is_dir() else iter([self._folder.file(path)])
        wanted = text.casefold() if ignore_case else text
        matches: list[Match] = []
        searched = skipped = 0
        for file in itertools.islice(files, FILES_MAX):
            content = _text_or_none(file)
            searched, skipped = searched + (content is not None), skipped + (content is None)
            matches += _matching_lines(self._folder.relative(file), content or "", wanted, ignore_case)
            if len(matches) > MATCHES_MAX:
                break
        truncated = len(matches) > MATCHES_MAX or next(files, None) is not None
        kept = matches[:MATCHES_MAX]
        return Matches(
            path=path,
            matches=kept,
            count=len(kept),
            files_searched=searched,
            files_skipped=skipped,
            truncated=truncated,
        )

    def parse_json(self, text: Annotated[str, Field(description="A JSON document.")]) -> Parsed:
        """Parses a JSON document and says where it is broken."""
        value = parse_json(text)
        return Parsed(kind=kind(value), keys=list(value) if isinstance(value, dict) else [], value=value)

    def format_data(
        self,
        data: Annotated[JsonValue, Field(description="A document as text in that syntax, or a value.")],
        syntax: Syntax,
        sort_keys: bool = False,
    ) -> Formatted:
        """Normalises JSON, YAML (comments are lost) or a Markdown table; renders a value as one."""
        text = render(data, syntax, sort_keys)
        return Formatted(syntax=syntax, text=text, lines=len(text.splitlines()))

    def write_file(self, path: RelativePath, content: str) -> Written:
        """Writes a UTF-8 text file of at most 1 MiB as a whole, with the folders it needs."""
        target = self._folder.locate(path)
        raw = content.encode()
        if len(raw) > TEXT_MAX_BYTES:
            raise ToolError(f"Invalid content: it is larger than {TEXT_MAX_BYTES} bytes.")
        if target.is_dir():
            raise ToolError(f"Invalid path {path!r}: it is a folder.")
        created = not target.exists()
        _replace(target, raw)
        return Written(
            path=path, size_bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest(), created=created
        )

    def delete_file(self, path: RelativePath) -> Deleted:
        """Deletes one file; there is no way back."""
        target = self._folder.file(path)
        size_bytes = target.stat().st_size
        target.unlink()
        return Deleted(path=path, size_bytes=size_bytes)

    def _entry(self, entry: os.DirEntry[str]) -> Entry | None:
        """None where it was deleted since it was found."""
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        path = self._folder.relative(entry.path)
        size_bytes = status.st_size if stat.S_ISREG(status.st_mode) else 0
        return Entry(name=entry.name, path=path, kind=_entry_kind(status.st_mode), size_bytes=size_bytes)

    def _files(self, start: Path, pattern: str) -> Iterator[Path]:
        for entry in self._folder.walk(start):
            if entry.is_file(follow_symlinks=False) and fnmatchcase(entry.name, pattern):
                yield Path(entry.path)


class Latency:
    """Middleware that makes each call take longer, as a server across a network does."""

    def __init__(self, latency_ms: float) -> None:
        self._latency_s = latency_ms / 1_000

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call":
            await anyio.sleep(self._latency_s)
        return await call_next(ctx)


def create_server(root: Path, log: Path | None = None, latency_ms: float = 0) -> MCPServer[Any]:
    """The server over `root`; OSError where the folder or the log cannot be opened."""
    tools = FileTools(root)
    late = [Latency(latency_ms)] if latency_ms else []
    server: MCPServer[Any] = MCPServer(
        "pml-files",
        version="1.0.0",
        log_level="WARNING",
        subscriptions=False,
        middleware=[*([CallLog(log)] if log is not None else []), *late],
    )
    add = server.add_tool
    add(_reported(tools.read_file), annotations=READS)
    add(_reported(tools.list_dir), annotations=READS)
    add(_reported(tools.search), annotations=READS)
    add(_reported(tools.parse_json), annotations=READS)
    add(_reported(tools.format_data), name="format", annotations=READS)
    add(_reported(tools.write_file), annotations=WRITES)
    add(_reported(tools.delete_file), annotations=WRITES)
    return server


def main() -> None:
    """Serve over standard input and output until the client leaves."""
    parser = argparse.ArgumentParser(description="An MCP server over one folder.")
    parser.add_argument("--root", type=Path, required=True, help="the folder it serves")
    parser.add_argument("--log", type=Path, help="append a JSON line before and after each call to this file")
    parser.add_argument("--latency-ms", type=float, default=0, help="each call takes so much longer")
    arguments = parser.parse_args()
    try:
        server = create_server(arguments.root, arguments.log, arguments.latency_ms)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    server.run()


def _reported(tool: Callable[_P, _R]) -> Callable[_P, _R]:
    """Foreseeable errors become the tool's answer; those of the operating system show no absolute path."""

    @wraps(tool)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return tool(*args, **kwargs)
        except OSError as error:
            raise ToolError(f"{error.strerror or 'Input or output failed'}.") from error
        except ValueError as error:
            raise ToolError(str(error)) from error

    return wrapper


def _resolved(target: Path) -> Path | None:
    try:
        return target.resolve()
    except (OSError, RuntimeError):
        return None


def _children(start: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(start) as entries:
        yield from sorted(entries, key=lambda entry: entry.name)


def _entry_kind(mode: int) -> Literal["file", "directory", "link", "other"]:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _read(file: Path) -> bytes | None:
    """The bytes of a file; None where it is too large."""
    with file.open("rb") as handle:
        raw = handle.read(TEXT_MAX_BYTES + 1)
    return raw if len(raw) <= TEXT_MAX_BYTES else None


def _text_or_none(file: Path) -> str | None:
    try:
        raw = _read(file)
        return None if raw is None else raw.decode()
    except (OSError, UnicodeDecodeError):
        return None


def _matching_lines(path: str, content: str, wanted: str, ignore_case: bool) -> list[Match]:
    return [
        Match(path=path, line=number, text=line.strip()[:MATCH_MAX_CHARACTERS])
        for number, line in enumerate(content.splitlines(), 1)
        if wanted in (line.casefold() if ignore_case else line)
    ]


def _replace(target: Path, raw: bytes) -> None:
    """Readers see the old file or the new one, never a part."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(raw)
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    main()
