"""Why a sandbox gave no answer."""

from __future__ import annotations

from pml.schemas.errors import PMLError


class SandboxMissing(PMLError):
    """The interpreter of a language is not installed."""

    code = "SANDBOX_MISSING"


class SandboxTimeout(PMLError):
    """A program computed for longer than a step may."""

    code = "SANDBOX_TIMEOUT"


class SandboxDied(PMLError):
    """The process of a program ended by itself: it took too much memory, or broke its interpreter."""

    code = "SANDBOX_DIED"


class OutputTooLarge(PMLError):
    """A program said more at once than a step may."""

    code = "OUTPUT_TOO_LARGE"


class TooManyCalls(PMLError):
    """A program made more calls than a run may have."""

    code = "TOO_MANY_CALLS"


class NotDeterministic(PMLError):
    """A program that was run again asked for other calls than the first time."""

    code = "NON_DETERMINISTIC"
