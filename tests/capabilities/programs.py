"""Programs that both languages can write down: generated as trees, printed as Python and as TypeScript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

FIELDS = {"number": "n", "text": "id", "truth": "ok", "list": "items"}
"""A field of each kind that every answer has, and so has every item of its list."""
KINDS = ("x", "y", "z")
INDENT = "    "


@dataclass(frozen=True)
class Text:
    """An expression in both languages."""

    python: str
    typescript: str

    def __str__(self) -> str:
        raise TypeError("an expression is printed in one language")


def same(text: str) -> Text:
    return Text(text, text)


def joined(pattern: str, *parts: Text) -> Text:
    """`pattern` with the parts in the places of its `{}`."""
    return Text(
        pattern.format(*(part.python for part in parts)), pattern.format(*(part.typescript for part in parts))
    )


def literal(value: Any) -> Text:
    written = json.dumps(value)
    return Text(repr(value), written)


@dataclass
class Block:
    """Lines in both languages."""

    python: list[str] = field(default_factory=list)
    typescript: list[str] = field(default_factory=list)

    def add(self, python: str, typescript: str) -> None:
        self.python.append(python)
        self.typescript.append(typescript)

    def nest(self, head: Text, inner: Block, tail: str = "}") -> None:
        """A compound statement; what is empty in Python is `pass`."""
        self.python += [head.python, *(INDENT + line for line in inner.python or ["pass"])]
        self.typescript += [head.typescript, *("  " + line for line in inner.typescript), tail]


@dataclass
class Names:
    """The variables that have a value here, by kind; functions by name with the kinds of their parameters."""

    variables: dict[str, list[str]] = field(
        default_factory=lambda: {kind: [] for kind in (*FIELDS, "answer")}
    )
    functions: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def inner(self) -> Names:
        return Names({kind: list(found) for kind, found in self.variables.items()}, list(self.functions))


@dataclass
class Writer:
    """Draws one program."""

    draw: st.DrawFn
    looped: bool = False
    made: int = 0
    calls: int = 0
    loops: int = 0
    gathers: bool = False

    def name(self, prefix: str = "v") -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(0, of - 1)) == 0

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.draw(st.integers(0, len(options) - 1))]

    # Expressions, each of a kind.

    def expression(self, kind: str, names: Names, depth: int = 2) -> Text:
        options: list[Any] = [] if kind == "truth" and names.variables["answer"] else [self.constant]
        if names.variables[kind]:
            options += [self.variable] * 3
        if names.variables["answer"]:
            options += [self.part] * 6
        if depth > 0:
            options += [self.operation, self.choice]
        return self.pick(options)(kind, names, depth)

    def constant(self, kind: str, names: Names, depth: int) -> Text:
        match kind:
            case "number":
                return literal(self.draw(st.integers(0, 9)))
            case "text":
                return literal(self.pick(["a", "b", "", 'ü "q"', *KINDS]))
            case "truth":
                return literal(self.draw(st.booleans()))
            case "list":
                return joined("[{}]", literal(self.draw(st.integers(0, 9))))
        raise AssertionError(kind)

    def variable(self, kind: str, names: Names, depth: int) -> Text:
        return same(self.pick(names.variables[kind]))

    def part(self, kind: str, names: Names, depth: int) -> Text:
        answer = self.pick(names.variables["answer"])
        steps = self.pick(["", "", ".inner", ".items[0]", '["inner"]'])
        return same(f"{answer}{steps}.{FIELDS[kind]}")

    def operation(self, kind: str, names: Names, depth: int) -> Text:
        def one(of: str) -> Text:
            return self.expression(of, names, depth - 1)

        match kind:
            case "number":
                return joined(self.pick(["({} + {})", "({} * {})", "({} - {})"]), one(kind), one(kind))
            case "text":
                found = one("text"), one("text")
                return Text(
                    "".join(["(", found[0].python, ' + "-" + ', found[1].python, ")"]),
                    "".join(["(", found[0].typescript, ' + "-" + ', found[1].typescript, ")"]),
                )
            case "list":
                return joined("[{}, {}]", one("number"), one("text"))
        return self._truth(one)

    def _truth(self, one: Any) -> Text:
        match self.draw(st.integers(0, 4)):
            case 0:
                return joined(self.pick(["({} > {})", "({} <= {})"]), one("number"), one("number"))
            case 1:
                left, right = one("text"), one("text")
                return Text(
                    f"({left.python} == {right.python})", f"({left.typescript} === {right.typescript})"
                )
            case 2:
                inner = one("truth")
                return Text(f"(not {inner.python})", f"(!{inner.typescript})")
        left, right = one("truth"), one("truth")
        python, typescript = self.pick([("and", "&&"), ("or", "||")])
        return Text(
            f"({left.python} {python} {right.python})",
            f"({left.typescript} {typescript} {right.typescript})",
        )

    def choice(self, kind: str, names: Names, depth: int) -> Text:
        test, then, otherwise = (self.expression(each, names, depth - 1) for each in ("truth", kind, kind))
        return Text(
            f"({then.python} if {test.python} else {otherwise.python})",
            f"({test.typescript} ? {then.typescript} : {otherwise.typescript})",
        )

    def anything(self, names: Names) -> Text:
        if names.variables["answer"] and self.chance(3):
            return same(self.pick(names.variables["answer"]))
        return self.expression(self.pick(list(FIELDS)), names)

    def call(self, names: Names) -> Text:
        """A call of a tool or of a function of the program, not awaited."""
        if names.functions and self.chance(3):
            function, kinds = self.pick(names.functions)
            given = [self.expression(kind, names, 1) for kind in kinds]
            return joined(function + "(" + ", ".join(["{}"] * len(given)) + ")", *given)
        self.calls += 1
        tool = f"mcp.s.t{self.calls}"
        keys = ["p", "q"][: self.draw(st.integers(0, 2))]
        values = [self.anything(names) for _ in keys]
        python = ", ".join(f"{key}={value.python}" for key, value in zip(keys, values, strict=True))
        typescript = ", ".join(f"{key}: {value.typescript}" for key, value in zip(keys, values, strict=True))
        return Text(f"{tool}({python})", f"{tool}({{ {typescript} }})")

    # Statements.

    def block(self, names: Names, depth: int, size: int = 4) -> Block:
        found = Block()
        if not names.variables["answer"]:
            self.awaited(found, names, depth)
        for _ in range(self.draw(st.integers(1, size))):
            self.statement(found, names, depth)
        return found

    def statement(self, block: Block, names: Names, depth: int) -> None:
        options: list[Any] = [self.awaited] * 3 + [self.assigned, self.together, self.ternary, self.guarded]
        options += [self.begun, self.grown, self.chained]
        if depth > 0:
            options += [self.branch, self.branch, self.switch, self.unrolled, self.returned_if, self.mapped]
            if names.variables["answer"] and not self.looped:
                options += [self.repeated]
        self.pick(options)(block, names, depth)

    def declare(self, block: Block, names: Names, kind: str, value: Text) -> None:
        """A new variable, or another value for one that is there."""
        known = [name for name in names.variables[kind] if name.startswith("v")]
        if known and self.chance(3):
            name = self.pick(known)
            block.add(f"{name} = {value.python}", f"{name} = {value.typescript};")
            return
        name = self.name()
        block.add(f"{name} = {value.python}", f"let {name} = {value.typescript};")
        names.variables[kind].append(name)

    def awaited(self, block: Block, names: Names, depth: int) -> None:
        self.declare(block, names, "answer", joined("await {}", self.call(names)))

    def assigned(self, block: Block, names: Names, depth: int) -> None:
        kind = self.pick(list(FIELDS))
        self.declare(block, names, kind, self.expression(kind, names))

    def ternary(self, block: Block, names: Names, depth: int) -> None:
        test = self.expression("truth", names)
        then, otherwise = (joined("await {}", self.call(names)) for _ in range(2))
        if names.variables["answer"] and self.chance(2):
            otherwise = same(self.pick(names.variables["answer"]))
        value = Text(
            f"({then.python} if {test.python} else {otherwise.python})",
            f"({test.typescript} ? {then.typescript} : {otherwise.typescript})",
        )
        self.declare(block, names, "answer", value)

    def guarded(self, block: Block, names: Names, depth: int) -> None:
        python, typescript = self.pick([("and", "&&"), ("or", "||")])
        test, call = self.expression("truth", names), self.call(names)
        value = Text(
            f"({test.python} {python} (await {call.python}).ok)",
            f"({test.typescript} {typescript} (await {call.typescript}).ok)",
        )
        self.declare(block, names, "truth", value)

    def together(self, block: Block, names: Names, depth: int) -> None:
        self.gathers = True
        one, other = self.call(names), self.call(names)
        first, second = self.name(), self.name()
        block.add(
            f"{first}, {second} = await asyncio.gather({one.python}, {other.python})",
            f"let [{first}, {second}] = await Promise.all([{one.typescript}, {other.typescript}]);",
        )
        names.variables["answer"] += [first, second]

    def begun(self, block: Block, names: Names, depth: int) -> None:
        """Two calls that are begun, and awaited after something that is no call."""
        self.gathers = True
        one, other = self.call(names), self.call(names)
        first, second = self.name("t"), self.name("t")
        for name, call in ((first, one), (second, other)):
            block.add(f"{name} = asyncio.create_task({call.python})", f"const {name} = {call.typescript};")
        self.declare(block, names, "number", self.expression("number", names))
        found = self.name(), self.name()
        left = ", ".join(found)
        block.add(
            f"{left} = await asyncio.gather({first}, {second})",
            f"let [{left}] = await Promise.all([{first}, {second}]);",
        )
        names.variables["answer"] += found

    def grown(self, block: Block, names: Names, depth: int) -> None:
        """A list that grows, by one or in a loop, and is read afterwards."""
        name, inner = self.name("l"), names.inner()
        block.add(f"{name} = []", f"const {name} = [];")
        variable, looped = self.name("i"), self.looped
        free = not looped and self.chance(2)
        inner.variables["answer" if free else "number"].append(variable)
        items = same(f"{self.pick(names.variables['answer'])}.items") if free else literal([2, 1])
        self.looped = looped or free
        body = self.block(inner, 0, 1)
        self.looped = looped
        value = self.anything(inner)
        body.add(f"{name}.append({value.python})", f"{name}.push({value.typescript});")
        head = Text(f"for {variable} in {items.python}:", f"for (const {variable} of {items.typescript}) {{")
        block.nest(head, body)
        names.variables["list"].append(name)

    def chained(self, block: Block, names: Names, depth: int) -> None:
        """Calls inside of a condition, an argument and an object."""
        one, other = self.call(names), self.call(names)
        block.nest(
            Text(
                f"if (await {one.python}).ok and not (await {other.python}).ok:",
                f"if ((await {one.typescript}).ok && !(await {other.typescript}).ok) {{",
            ),
            self.block(names.inner(), depth - 1, 2) if depth > 0 else Block(),
        )
        inner, self.calls = self.call(names), self.calls + 1
        found = self.name()
        block.add(
            f'{found} = await mcp.s.t{self.calls}(p={{"k": [(await {inner.python}).n]}})',
            f"let {found} = await mcp.s.t{self.calls}({{ p: {{ k: [(await {inner.typescript}).n] }} }});",
        )
        names.variables["answer"].append(found)

    def branch(self, block: Block, names: Names, depth: int) -> None:
        test = self.expression("truth", names)
        block.nest(
            Text(f"if {test.python}:", f"if ({test.typescript}) {{"),
            self.block(names.inner(), depth - 1),
            "}" if (alone := self.chance(2)) else "} else {",
        )
        if not alone:
            otherwise = self.block(names.inner(), depth - 1)
            block.python += ["else:", *(INDENT + line for line in otherwise.python)]
            block.typescript += [*("  " + line for line in otherwise.typescript), "}"]

    def returned_if(self, block: Block, names: Names, depth: int) -> None:
        inner = names.inner()
        body = self.block(inner, depth - 1, 2)
        value = self.returned(inner)
        body.add(f"return {value.python}", f"return {value.typescript};")
        test = self.expression("truth", names)
        block.nest(Text(f"if {test.python}:", f"if ({test.typescript}) {{"), body)

    def returned(self, names: Names) -> Text:
        """What functions give is an answer, so that whoever calls them can go on with it."""
        if names.variables["answer"]:
            return same(self.pick(names.variables["answer"]))
        return joined("await {}", self.call(names))

    def switch(self, block: Block, names: Names, depth: int) -> None:
        subject = same(f"{self.pick(names.variables['answer'])}.id")
        block.add(f"match {subject.python}:", f"switch ({subject.typescript}) {{")
        for kind in (*KINDS[: self.draw(st.integers(1, 2))], None):
            if kind is None and self.chance(2):
                continue
            body = self.block(names.inner(), depth - 1, 2)
            label = "_" if kind is None else json.dumps(kind)
            block.python += [f"{INDENT}case {label}:", *(2 * INDENT + line for line in body.python)]
            written = "default: {" if kind is None else f"case {label}: {{"
            block.typescript += [
                f"  {written}",
                *("    " + line for line in body.typescript),
                "    break;",
                "  }",
            ]
        block.typescript.append("}")

    def unrolled(self, block: Block, names: Names, depth: int) -> None:
        items = literal(self.draw(st.lists(st.integers(0, 3), max_size=3)))
        variable, inner = self.name("i"), names.inner()
        inner.variables["number"].append(variable)
        body = self.block(inner, depth - 1, 2)
        block.nest(
            Text(f"for {variable} in {items.python}:", f"for (const {variable} of {items.typescript}) {{"),
            body,
        )

    def repeated(self, block: Block, names: Names, depth: int) -> None:
        self.loops += 1
        items = f"{self.pick(names.variables['answer'])}.items"
        variable, inner = self.name("i"), names.inner()
        inner.variables["answer"].append(variable)
        self.looped = True
        body = self.block(inner, depth - 1, 2)
        self.looped = False
        block.nest(Text(f"for {variable} in {items}:", f"for (const {variable} of {items}) {{"), body)

    def mapped(self, block: Block, names: Names, depth: int) -> None:
        """Calls for every item of a list of constants or, outside of a loop, of a result."""
        self.gathers = True
        variable, inner = self.name("i"), names.inner()
        inner.variables[
            "answer" if (free := not self.looped and bool(names.variables["answer"])) else "number"
        ] += [variable]
        items = same(f"{self.pick(names.variables['answer'])}.items") if free else literal([1, 2])
        call = self.call(inner)
        found = self.name()
        block.add(
            f"{found} = await asyncio.gather(*[{call.python} for {variable} in {items.python}])",
            f"let {found} = await Promise.all({items.typescript}.map(({variable}) => {call.typescript}));",
        )
        names.variables["list"].append(found)

    def function(self, block: Block, names: Names) -> None:
        kinds = tuple(self.pick(list(FIELDS)) for _ in range(self.draw(st.integers(0, 2))))
        parameters = [self.name("p") for _ in kinds]
        inner = Names(functions=list(names.functions))
        for name, kind in zip(parameters, kinds, strict=True):
            inner.variables[kind].append(name)
        name = self.name("f")
        body = self.block(inner, 1, 3)
        value = self.returned(inner)
        body.add(f"return {value.python}", f"return {value.typescript};")
        given = ", ".join(parameters)
        block.nest(Text(f"async def {name}({given}):", f"async function {name}({given}) {{"), body)
        names.functions.append((name, kinds))


@dataclass(frozen=True)
class Written:
    """One program, in both languages."""

    python: str
    typescript: str
    gathers: bool


@st.composite
def programs(draw: st.DrawFn) -> Written:
    """Programs of functions, branches, loops and calls; every variable has a value where it is read."""
    writer, names, block = Writer(draw), Names(), Block()
    names.variables["number"].append("given")
    for _ in range(draw(st.integers(0, 2))):
        writer.function(block, names)
    whole = writer.block(names, 3, 5)
    value = writer.anything(names)
    whole.add(f"return {value.python}", f"return {value.typescript};")
    lines = [
        "\n".join([*one, *other, ""])
        for one, other in ((block.python, whole.python), (block.typescript, whole.typescript))
    ]
    return Written(lines[0], lines[1], writer.gathers)
