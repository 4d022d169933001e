"""What a person sees of a text: words as they are spelt, and whatever hides or turns them."""

from __future__ import annotations

import pytest

from pml.streams.printable import printable


@pytest.mark.parametrize(
    "text",
    [
        "10\u00a0km",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "👩\u200d💻",
    ],
    ids=["a space that does not break", "Persian", "Hindi", "emoji"],
)
def test_what_words_are_spelt_with_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    "letter",
    [
        *("\x00", "\x1b", "\r", "\x7f", "\x85", "\x9b"),
        *("\u00ad", "\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029"),
        *("\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2060", "\u2066", "\u2067", "\u2068", "\u2069"),
        *("\ufeff", "\U000e0001", "\U000e0041", "\U000e007f", "\ud800"),
    ],
    ids=lambda letter: f"{ord(letter):04x}",
)
def test_what_steers_turns_or_hides_is_written_out(letter: str) -> None:
    told = printable(f"a{letter}b")

    assert told.isprintable()
    assert told.startswith("a\\")
    assert f"{ord(letter):x}b" in told


def test_where_a_person_consents_nothing_stays_that_nobody_sees() -> None:
    assert printable("a\u200cb\u200dc\u00a0d\n", keep="") == r"a\u200cb\u200dc\xa0d\x0a"
