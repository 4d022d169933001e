"""The names that a language itself has: what they compute may be written into an argument.

What reads a clock, a random number or the world is no value of the program: it gives another value each time.
"""

from __future__ import annotations

from pml.processors.capabilities.program import Language

_PURE: dict[Language, frozenset[str]] = {
    "python": frozenset(
        [
            "abs",
            "all",
            "any",
            "ascii",
            "bin",
            "bool",
            "chr",
            "dict",
            "divmod",
            "enumerate",
            "filter",
            "float",
            "format",
            "frozenset",
            "hex",
            "int",
            "isinstance",
            "len",
            "list",
            "map",
            "max",
            "min",
            "next",
            "iter",
            "oct",
            "ord",
            "pow",
            "range",
            "repr",
            "reversed",
            "round",
            "set",
            "sorted",
            "slice",
            "str",
            "sum",
            "tuple",
            "type",
            "zip",
            "json",
            "math",
            "re",
            "True",
            "False",
            "None",
            "Exception",
            "ValueError",
            "KeyError",
            "TypeError",
        ]
    ),
    "typescript": frozenset(
        [
            "Array",
            "BigInt",
            "Boolean",
            "Infinity",
            "JSON",
            "Map",
            "Math",
            "NaN",
            "Number",
            "Object",
            "RegExp",
            "Set",
            "String",
            "Error",
            "TypeError",
            "decodeURI",
            "decodeURIComponent",
            "encodeURI",
            "encodeURIComponent",
            "isFinite",
            "isNaN",
            "parseFloat",
            "parseInt",
            "structuredClone",
            "undefined",
        ]
    ),
}
_IMPURE: dict[Language, frozenset[str]] = {
    "python": frozenset(
        [
            "__import__",
            "breakpoint",
            "compile",
            "delattr",
            "eval",
            "exec",
            "exit",
            "getattr",
            "globals",
            "hash",
            "help",
            "id",
            "input",
            "locals",
            "open",
            "quit",
            "setattr",
            "vars",
            "asyncio",
            "datetime",
            "os",
            "pathlib",
            "random",
            "requests",
            "secrets",
            "subprocess",
            "sys",
            "threading",
            "time",
            "uuid",
            "urllib",
        ]
    ),
    "typescript": frozenset(
        [
            "Bun",
            "Date",
            "Deno",
            "Function",
            "Proxy",
            "Reflect",
            "WebSocket",
            "XMLHttpRequest",
            "crypto",
            "document",
            "eval",
            "fetch",
            "global",
            "globalThis",
            "import",
            "localStorage",
            "navigator",
            "performance",
            "process",
            "queueMicrotask",
            "require",
            "setInterval",
            "setTimeout",
            "window",
        ]
    ),
}
_SILENT = frozenset(
    {"print", "console.log", "console.error", "console.warn", "console.info", "console.debug"}
)
_CHANGING = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "push",
        "shift",
        "unshift",
        "splice",
        "fill",
        "copyWithin",
        "set",
        "delete",
    ]
)


def is_pure(name: str, language: Language) -> bool:
    """Whether a name of the language only computes: `len`, `JSON.parse`, and not `Math.random`."""
    return name.split(".", maxsplit=1)[0] in _PURE[language] and name != "Math.random"


def is_impure(name: str, language: Language) -> bool:
    """Whether a name of the language reads or changes more than its arguments."""
    return name.split(".", maxsplit=1)[0] in _IMPURE[language] or name == "Math.random"


def is_silent(name: str) -> bool:
    """Whether a function only says something to whoever watches."""
    return name in _SILENT


def is_known(name: str, language: Language) -> bool:
    """Whether a variable that nobody assigned is a name of the language."""
    return name in _PURE[language] or name in _IMPURE[language] or name in {"print", "console"}


def changes_its_receiver(method: str) -> bool:
    """Whether a method of this name changes the list or object that it is called on."""
    return method in _CHANGING
