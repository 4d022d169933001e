"""A catalog that is small enough to know what is right, and drawn ones."""

from __future__ import annotations

from hypothesis import strategies as st

from pml.processors.discovery.documents import Document, tool_document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.memory.embedding import HashedNgrams

WORDS = (
    "read",
    "write",
    "file",
    "mail",
    "send",
    "weather",
    "city",
    "list",
    "report",
    "chart",
    "date",
    "user",
)
TOOLS = {
    "files:read_file": "Read a file from the disk",
    "files:write_file": "Write text into a file",
    "mail:send_mail": "Send a mail to somebody",
    "mail:validate_address": "Say whether an address is a valid one",
    "weather:get_forecast": "The weather of the next days in a city",
    "geo:find_city": "Look up a city by its name",
}


def documents() -> list[Document]:
    return [tool_document(tool, told) for tool, told in TOOLS.items()]


def small_index() -> DiscoveryIndex:
    index = DiscoveryIndex(HashedNgrams())
    index.put(documents())
    return index


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@st.composite
def drawn_documents(draw: st.DrawFn) -> list[Document]:
    """Tools and capabilities with ids of their own."""
    names = draw(st.lists(st.integers(0, 99), min_size=1, max_size=12, unique=True))
    return [
        Document(f"d{name:02}", "capability" if name % 3 == 0 else "tool", f"n {name}", draw(texts))
        for name in names
    ]


@st.composite
def drawn_pasts(draw: st.DrawFn) -> list[Past]:
    tools = st.lists(st.integers(0, 99).map(lambda name: f"d{name:02}"), min_size=1, max_size=4)
    return draw(st.lists(st.builds(Past, texts, tools.map(tuple)), max_size=6))
