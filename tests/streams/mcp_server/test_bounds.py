from hypothesis import given
from hypothesis import strategies as st

from pml.streams.mcp_server.bounds import cut, cut_bytes, fitting, wire_bytes


def test_bytes_are_those_of_the_worst_transport() -> None:
    assert wire_bytes("aé\n😀") == len('"a\\u00e9\\n\\ud83d\\ude00"')


@given(st.text(), st.integers(0, 40))
def test_a_cut_text_is_its_beginning(text: str, most: int) -> None:
    told = cut(text, most)

    assert len(told) <= most
    assert told == text or (told == "" and most == 0) or text.startswith(told.removesuffix("…"))


@given(st.text(), st.integers(8, 60))
def test_a_text_cut_by_bytes_fits(text: str, most: int) -> None:
    told = cut_bytes(text, most)

    assert wire_bytes(told) <= most
    assert told == text or text.startswith(told[:-1])


@given(st.text(max_size=60), st.integers(2, 60), st.integers(0, 60), st.integers(1, 20))
def test_a_part_is_as_long_as_can_be(text: str, bytes_max: int, start: int, most: int) -> None:
    start = min(start, len(text))

    end = fitting(text, bytes_max, start, most)

    ends = [
        place
        for place in range(start, min(len(text), start + most) + 1)
        if wire_bytes(text[start:place]) <= bytes_max
    ]
    assert end == max(ends)
