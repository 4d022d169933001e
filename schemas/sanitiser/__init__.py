"""What may be kept for ever: values without secrets, within a limit (DESIGN §2, rule 7).

`sanitise` is for arguments, results and contexts, `sanitise_text` for error messages, `preview` for one
line of either, `sanitise_and_preview` for a value and its line. All are pure: the same value gives the same
answer, and an answer given in again comes back unchanged.
"""

from pml.schemas.sanitiser.markers import REDACTED, JsonValue
from pml.schemas.sanitiser.values import (
    LIMIT_BYTES,
    TEXT_LIMIT_BYTES,
    preview,
    sanitise,
    sanitise_and_preview,
    sanitise_text,
)

__all__ = [
    "LIMIT_BYTES",
    "REDACTED",
    "TEXT_LIMIT_BYTES",
    "JsonValue",
    "preview",
    "sanitise",
    "sanitise_and_preview",
    "sanitise_text",
]
