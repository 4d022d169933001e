"""How secret a value is, judged by the name it stands under.

A name is split into words (snake, camel, kebab, dots), and words decide, never parts of words: `author`,
`keyboard` and `monkey` say nothing. Four answers, from harmless to certain:

PLAIN     says nothing; also names of pages and public keys (`next_page_token`, `public_key`).
SUSPECT   hides a value that looks random: `key`, `auth`, `signature`, and what only speaks about a secret
          (`max_tokens`, `token_type`, `password_policy`, `secret_name`).
TEXT      hides text, not numbers: `db_pass`, while `{"pass": 12, "fail": 0}` counts tests.
SECRET    hides every value: `password`, `api_key`, `authorization`, `client_secret`, `access_token`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final


class Secrecy(IntEnum):
    """What a name says about its value."""

    PLAIN = 0
    SUSPECT = 1
    TEXT = 2
    SECRET = 3


_CACHED_NAME_MAX = 128  # longer names are judged each time, so that the cache stays small
_NAME_MAX = 4_096  # judged by its beginning and its end beyond that

_STEM = re.compile(
    "pass|pwd|secret|token|key|auth|cred|cookie|jwt|bearer|pin|otp|cvv|cvc|mnemonic|phrase|csrf|xsrf|sig|sess|sid"
    "|recovery|backup|kennwort|senha|contras|session|salt|nonce"
)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\x00-\x7f]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_WORDS: Final = _words(
    "password passwords passwd passwds pwd passphrase passphrases passcode passcodes secret secrets "
    "credential credentials cred creds authorization bearer jwt cookie cookies token apikey apikeys "
    "apitoken authtoken accesstoken pin otp totp cvv cvc mnemonic csrf xsrf passwort kennwort senha "
    "contrasena"
)
_SUSPECT_WORDS: Final = _words(
    "key keys auth oauth authentication tokens sig signature session sessionid sid nonce salt"
)
# Run together, as environment variables and old APIs do: PGPASSWORD, dbpasswd, clientsecret, csrftoken.
_SECRET_ENDINGS: Final = tuple(
    _words(
        "password passwd passphrase secret apikey accesskey secretkey privatekey authtoken accesstoken "
        "refreshtoken csrftoken sessiontoken sshpass dbpass userpass motdepasse contraseña seedphrase "
        "recoveryphrase recoverycodes backupcodes"
    )
)
# The word before `key` that makes it one to hide.
_KEY_OWNERS: Final = _words(
    "api access secret private encryption encrypt decryption signing sign auth master account shared "
    "service license ssh deploy subscription storage client app application admin hmac aes rsa pgp "
    "gpg tls ssl webhook session root bot functions consumer developer integration write server"
)
_PUBLIC_KEYS: Final = _words("public primary foreign cache idempotency partition sort row object routing")
_TOKEN_OWNERS: Final = _words("access api auth refresh bearer id session secret bot device reset")
_TOKEN_COUNTS: Final = _words(
    "max min total prompt completion input output cached count num limit budget usage used remaining "
    "per reasoning new context price cost"
)
_PAGE_WORDS: Final = _words("page pagination continuation next sync cursor resume delta start")
# As the last word: the value speaks about the secret and is not it.
_ABOUT: Final = _words(
    "name names type types count counts length size url uri endpoint policy at expires expiry "
    "expiration ttl version enabled required label description status format strength min max limit "
    "algorithm alg arn path file index usage budget price cost rate lifetime age field placeholder "
    "error errors"
)
_BARE_NAMES: Final = _words(
    "value values val v raw data content contents text string literal default plain hex base64 b64 encoded"
)

_RANDOM = re.compile(r"[\w+/=~.:-]{16,512}")
_UUID = re.compile(r"(?:[a-z]{1,8}_)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
_LETTER_BESIDE_DIGIT = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]")
_DIGIT = re.compile(r"[0-9]")
_HEX_BITS = 3.0  # random hex has nearly 4 bits a digit, words and counters have far less
_TOKEN_BITS = 3.5  # as gitleaks' generic-api-key rule
_LONG_TOKEN_BITS = 4.5  # no name of 40 characters is that varied, 40 characters of base64 are


def secrecy(name: str) -> Secrecy:
    """What the name of a field, header, variable or option says about its value."""
    return _cached(name) if len(name) <= _CACHED_NAME_MAX else _judged(name)


def is_bare(name: str) -> bool:
    """Whether a name only says that its value is the value of what is named around it."""
    return name.strip("#$@_").lower() in _BARE_NAMES


def _judged(name: str) -> Secrecy:
    shown = name if len(name) <= _NAME_MAX else name[: _NAME_MAX // 2] + name[-_NAME_MAX // 2 :]
    if _STEM.search(shown.lower()) is None:
        return Secrecy.PLAIN
    words = [word.lower() for word in _WORD.findall(shown)]
    judgement = _by_words(words)
    if judgement is Secrecy.PLAIN and "".join(words).endswith(_SECRET_ENDINGS):
        judgement = Secrecy.SECRET
    return Secrecy.SUSPECT if judgement and words[-1] in _ABOUT else judgement


_cached = lru_cache(maxsize=4_096)(_judged)


def _by_words(words: list[str]) -> Secrecy:
    strongest = max((_by_word(word, words) for word in words), default=Secrecy.PLAIN)
    if strongest is not Secrecy.SECRET and _owned_key(words):
        return Secrecy.SECRET
    return max(strongest, Secrecy.TEXT) if words[-1:] == ["pass"] else strongest


def _by_word(word: str, words: list[str]) -> Secrecy:
    if word in ("token", "tokens"):
        return _token(word, words)
    if word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS):
        return Secrecy.SECRET
    if word in ("key", "keys") and not _PUBLIC_KEYS.isdisjoint(words):
        return Secrecy.PLAIN
    return Secrecy.SUSPECT if word in _SUSPECT_WORDS else Secrecy.PLAIN


def _token(word: str, words: list[str]) -> Secrecy:
    if not _PAGE_WORDS.isdisjoint(words):
        return Secrecy.PLAIN
    if not _TOKEN_COUNTS.isdisjoint(words):
        return Secrecy.SUSPECT
    return Secrecy.SECRET if word == "token" or not _TOKEN_OWNERS.isdisjoint(words) else Secrecy.SUSPECT


def _owned_key(words: list[str]) -> bool:
    pairs = pairwise(words)
    return any(second in ("key", "keys") and first in _KEY_OWNERS for first, second in pairs)


def looks_random(text: str) -> bool:
    """Whether text looks drawn at random: one long token of letters and digits, mixed and varied; no UUID."""
    if _RANDOM.fullmatch(text) is None or _UUID.fullmatch(text) is not None:
        return False
    if _HEX.fullmatch(text) is not None:
        return _entropy_bits(text) >= _HEX_BITS
    bits = _entropy_bits(text) if _DIGIT.search(text) is not None else 0.0
    return bits >= _LONG_TOKEN_BITS or (bits >= _TOKEN_BITS and len(_LETTER_BESIDE_DIGIT.findall(text)) >= 3)


def _entropy_bits(text: str) -> float:
    """Shannon entropy in bits a character."""
    shares = (count / len(text) for count in Counter(text).values())
    return -sum(share * math.log2(share) for share in shares)
