"""What the demo's servers work on: a folder of a small made-up product, and a clone of a checkout.

Both are rebuilt before each run, always the same; `digest` tells whether two runs left them the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from pml.deploy.examples import product
from pml.schemas.errors import ConfigurationError, PrerequisiteError

MARKER = ".pml-demo"
GIT_TIMEOUT_S = 60.0  # a local clone of a large checkout, on a slow disk
HISTORY_MIN_COMMITS = 2  # below that there is no change to look at

_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
_NO_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_FIRST_COMMIT_AT_S = 1_780_000_000
_COMMITS_APART_S = 86_400


def build(root: Path) -> None:
    """Make the folder anew, the same bytes each time; a folder that is not ours is refused.

    Raises:
        ConfigurationError: `root` holds files and was not made by this function.
    """
    _clear(root, Path(MARKER))
    _write(root, MARKER, "PML's demo made this folder and empties it before each run.\n")
    for path, text in product.files().items():
        _write(root, path, text)


def clone(repository: Path, target: Path, *, linked: bool = False) -> None:
    """Clone a checkout without hooks; what is not committed stays behind.

    Only what is `linked` shares files with `repository`, its packs: for a clone of one that is ours. Where
    `repository` has no history (see `has_history`), a small repository is made instead, the same commits
    each time.

    Raises:
        ConfigurationError: `target` holds files and was not made by this function.
        PrerequisiteError: git is missing or refuses; the message carries its words.
    """
    if not has_history(repository):
        build_repository(target)
        return
    marker = Path(".git", MARKER)
    _clear(target, marker)
    source = _git("rev-parse", "--show-toplevel", at=repository).strip()
    # Through a pack: copying thousands of loose objects one by one takes seconds. To link the pack of such a
    # clone takes a sixth of packing it again.
    options = ("--quiet", "--local" if linked else "--no-local", "--template=")
    _git("-c", f"core.hooksPath={os.devnull}", "clone", *options, source, str(target))
    (target / marker).touch()


def build_repository(target: Path) -> None:
    """Make the small repository anew, the same commits each time; a folder that is not ours is refused.

    Raises:
        ConfigurationError: `target` holds files and was not made here.
        PrerequisiteError: git is missing or refuses.
    """
    marker = Path(".git", MARKER)
    _clear(target, marker)
    _make_repository(target)
    (target / marker).touch()


def has_history(repository: Path) -> bool:
    """Whether there is a checkout with at least two commits; a shallow one may have a single commit.

    Raises:
        PrerequisiteError: git is missing or does not answer.
    """
    _git("--version")
    try:
        count = _git("rev-list", "--count", f"--max-count={HISTORY_MIN_COMMITS}", "HEAD", at=repository)
    except PrerequisiteError:
        return False
    return int(count) >= HISTORY_MIN_COMMITS


def digest(root: Path) -> str:
    """BLAKE2b of every path, kind and content below a folder; of a repository also HEAD, refs and index.

    The rest of `.git` (cached times, logs) changes when somebody only reads and says nothing about content.
    """
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(_below(root)):
        for part in (path.relative_to(root).as_posix().encode(), *_kind_and_content(path)):
            total.update(len(part).to_bytes(8, "big") + part)
    if (root / ".git").exists():
        for command in (("rev-parse", "HEAD"), ("for-each-ref",), ("ls-files", "--stage")):
            total.update(_git(*command, at=root).encode())
    return total.hexdigest()


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (Path(folder) / name for name in (*folders, *files))


def _kind_and_content(path: Path) -> tuple[bytes, bytes]:
    if path.is_symlink():
        return b"link", os.fsencode(path.readlink())
    return (b"directory", b"") if path.is_dir() else (b"file", path.read_bytes())


def _write(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")


def _clear(target: Path, marker: Path) -> None:
    """Empty a folder that we made before; the folder itself stays, for a server may stand in it."""
    target.mkdir(parents=True, exist_ok=True)
    entries = list(target.iterdir())
    if entries and not (target / marker).exists():
        raise ConfigurationError(f"{target} holds files that no demo made; empty it or name another folder.")
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _make_repository(target: Path) -> None:
    """A commit a file, a day apart, by one author."""
    _git("init", "--quiet", "--initial-branch=main", "--template=", str(target), variables=_NO_CONFIGURATION)
    for number, (path, text) in enumerate(product.project().items()):
        _write(target, path, text)
        variables = {**_NO_CONFIGURATION, **_signature(number)}
        _git("add", "--", path, at=target, variables=variables)
        _git("commit", "--quiet", "--message", f"Add {path}", at=target, variables=variables)


def _signature(number: int) -> dict[str, str]:
    date = f"{_FIRST_COMMIT_AT_S + number * _COMMITS_APART_S} +0000"
    person = {"NAME": "Quayside", "EMAIL": "team@quayside.example", "DATE": date}
    return {f"GIT_{role}_{name}": text for role in ("AUTHOR", "COMMITTER") for name, text in person.items()}


def _git(*arguments: str, at: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    place = () if at is None else ("-C", str(at))
    inherited = {name: text for name, text in os.environ.items() if name not in _HOOK_VARIABLES}
    environment = {**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(variables or {})}
    command = ("git", *place, *arguments)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True
        )
    except FileNotFoundError:
        raise PrerequisiteError("git is missing: install it, then run this again.") from None
    except subprocess.TimeoutExpired:
        raise PrerequisiteError(f"`{' '.join(command)}` took longer than {GIT_TIMEOUT_S:g} s.") from None
    except subprocess.CalledProcessError as error:
        raise PrerequisiteError(f"`{' '.join(command)}` failed: {error.stderr.strip()}") from None
    return done.stdout
