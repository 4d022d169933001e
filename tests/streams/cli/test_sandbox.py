"""Programs that are no DAG over a whole stack, by the command line, with a bridge that dies in the middle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fixtures.project import Project, wait_until
from tests.fixtures.project import guest as project

__all__ = ["project"]

pytestmark = [pytest.mark.integration]

PYTHON = """\
texts = []
while len(texts) < rounds:
    page = await mcp.files.read_file(path=path)
    await mcp.files.write_file(path=f"copy{len(texts)}.txt", content=page.text)
    texts.append(page.text)
try:
    await mcp.files.read_file(path="nothing.txt")
except Exception as error:
    texts.append("caught")
return {"texts": texts}
"""
READING = """\
texts = []
while len(texts) < rounds:
    texts.append((await mcp.files.read_file(path=path)).text)
return len(texts)
"""
TYPESCRIPT = """\
const names: string[] = [];
for (let n = 0; n < rounds; n++) {
  const [page, listed] = await Promise.all([
    mcp.files.read_file({ path }),
    mcp.files.list_dir({ path: "." }),
  ]);
  names.push(`${page.text.trim()} ${listed.count > 0}`);
}
return { names };
"""


def ran(project: Project, name: str, text: str, *options: str, code: int = 0) -> Any:
    (project.folder / name).write_text(text)
    return project.json("submit", name, "--wait", "--context", "path=a.txt", *options, code=code)


def test_programs_that_are_no_dag_run(project: Project) -> None:
    project.pml("up", "--detach")
    done = ran(project, "job.py", PYTHON, "--context", "rounds=2")
    assert (done["status"], done["mode"]) == ("completed", "sandbox")
    assert done["result"] == {"texts": ["a file\n", "a file\n", "caught"]}
    assert list(done["results"]) == ["n1", "n2", "n3", "n4", "n5"]
    assert done["results"]["n5"]["status"] == "failed"
    assert (project.files / "copy1.txt").read_text() == "a file\n"

    done = ran(project, "job.ts", TYPESCRIPT, "--context", "rounds=2")
    assert done["result"] == {"names": ["a file true", "a file true"]}
    assert (done["layers"], done["mode"]) == (2, "sandbox")
    assert any("template" in reason or "computed" in reason for reason in done["reasons"]), done["reasons"]
    told = project.pml("submit", "job.ts", "--wait", "--context", "path=a.txt", "--context", "rounds=1")
    assert "in the sandbox: line " in told

    failed = ran(project, "bad.py", "a = 1\n\nwhile True:\n    raise ValueError(a)\n", code=1)
    assert failed["error"]["code"] == "PROGRAM_ERROR"
    assert failed["error"]["details"] == {"line": 4}
    with_line = ran(project, "none.ts", "let n = 1;\nwhile (n) { n = 0; }\nreturn 5;")
    assert with_line["result"] == 5

    is_learned(project)
    repeats(project)
    the_guide_is_right(project)
    says_why(project)
    dies_in_the_middle(project)


COLLECT = """\
# what is in the first so many lines of a file
found = []
while len(found) < args.get("times", 1):
    found.append((await mcp.files.read_file(path=path)).text)
return found
"""
PEEK = """\
tasks:
  - {id: n1, tool: "files:read_file", arguments: {path: a.txt}}
  - {id: n2, tool: "files:list_dir", arguments: {path: .}, depends_on: [n1]}
result: {type: reference, expression: n1.text}
"""
OUTER = """\
first = await capabilities.collect_texts(path="a.txt", times=2)
second = await capabilities["peek"]()
while False:
    pass
return [first, second]
"""


EACH = """\
found = await mcp.files.list_dir(path=".", pattern="a*.txt")
pages = await asyncio.gather(*[mcp.files.read_file(path=entry.path) for entry in found.entries])
more = [await mcp.files.read_file(path=name) for name in args.names]
return {"pages": pages, "more": more}
"""


def repeats(project: Project) -> None:
    """A loop over a result is a DAG that comes in parts, here two; it answers its intent too."""
    given = ("--context", 'names=["a.txt", "a.txt"]')
    done = ran(project, "each.py", EACH, *given, "--intent", "Read each of many")
    assert (done["status"], done["mode"], done["reasons"]) == ("completed", "dag", [])
    assert [page["text"] for page in done["result"]["pages"]] == ["a file\n"]
    assert [page["text"] for page in done["result"]["more"]] == ["a file\n"] * 2
    assert set(done["results"]) == {"n1", "n2__0", "n3__0", "n3__1"}

    def learned() -> bool:
        listed = {item["name"]: item["status"] for item in project.json("capability", "list")["items"]}
        return listed.get("read-each-of-many") == "learned"

    wait_until(learned, "it to be learned")
    assert "may call" in project.pml("capability", "show", "read-each-of-many")
    given = ("--context", "names=[]", "--context", "pattern=b*.txt", "--wait")
    again = project.json("submit", "--intent", "Read each of many", *given)
    assert (again["status"], again["result"]) == ("completed", {"pages": [], "more": []})


def is_learned(project: Project) -> None:
    """A program that ran in the sandbox answers its intent, and is called by others, as a DAG is."""
    done = ran(project, "collect.py", COLLECT, "--intent", "Collect texts")
    assert (done["status"], done["result"]) == ("completed", ["a file\n"])
    (project.folder / "peek.yaml").write_text(PEEK)
    project.json("submit", "peek.yaml", "--intent", "peek", "--wait")

    def learned() -> bool:
        listed = {item["name"]: item["status"] for item in project.json("capability", "list")["items"]}
        return listed.get("collect-texts") == listed.get("peek") == "learned"

    wait_until(learned, "both to be learned")
    (record,) = [
        item for item in project.json("capability", "list")["items"] if item["name"] == "collect-texts"
    ]
    assert (record["mode"], record["tools"]) == ("sandbox", ["files:read_file"])
    assert {item["name"]: item["required"] for item in record["parameters"]} == {"times": False, "path": True}
    shown = project.pml("capability", "show", "collect-texts")
    assert "runs in the sandbox" in shown
    assert "`while`" in shown
    again = project.json(
        *("submit", "--intent", "Collect texts", "--context", "path=a.txt", "--context", "times=3", "--wait")
    )
    assert (again["mode"], again["result"]) == ("sandbox", ["a file\n"] * 3)
    outer = ran(project, "outer.py", OUTER.replace("collect_texts", record["capability_id"]))
    assert outer["result"] == [["a file\n"] * 2, "a file\n"]
    assert {"n1", "n2", "c3__n1", "c3__n2"} == set(outer["results"])


def the_guide_is_right(project: Project) -> None:
    """The program of the guide does what the guide says."""
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "programs.md").read_text()
    text = guide.split("$ cat pages.py\n")[1].split("\n\n")[0]
    done = ran(project, "pages.py", text + "\n")
    assert done["result"]["pages"][:3] == ["a file\n"] * 3
    assert done["result"]["pages"][3].startswith("TOOL_ERROR: ")


def says_why(project: Project) -> None:
    """In the log, and in the list of runs."""
    (row,) = [run for run in project.json("run", "list") if run["tasks"] == 5]
    (sandbox,) = [
        event
        for event in json.loads(project.pml("run", "trace", row["run_id"], "--json"))["events"]
        if event["type"] == "run.expanded" and event["data"].get("reasons")
    ]
    assert sandbox["data"]["mode"] == "sandbox"
    assert "`while`" in sandbox["data"]["reasons"][0]


def dies_in_the_middle(project: Project) -> None:
    """The program is run again from its beginning by the next bridge, with the results that it had."""
    calls = project.folder / "calls.jsonl"
    before = len(calls.read_text().splitlines())
    (project.folder / "reading.py").write_text(READING)
    given = ("--context", "path=a.txt", "--context", "rounds=60")
    sent = project.json("submit", "reading.py", *given, "--session", "s-dies")
    wait_until(lambda: len(calls.read_text().splitlines()) > before + 10, "some calls")
    pid = project.pid("bridge")
    assert pid is not None
    psutil.Process(pid).kill()
    shown: Any = {}

    def has_ended() -> bool:
        shown.update(project.json("run", "show", sent["run_id"], "--session", "s-dies"))
        return shown["status"] in {"completed", "failed"}

    wait_until(has_ended, "the run to end")
    assert shown["status"] == "completed", shown["error"]
    assert shown["result"] == 60
    # Each call has a line where it begins and one where it ends; the one that ran then is made once more.
    assert len(calls.read_text().splitlines()) - before < 2 * 65
    assert left(project) == []


def left(project: Project) -> list[str]:
    """Processes of sandboxes; those that stood end with their bridge, and nothing stands after an end."""
    names = (" ".join(process.cmdline()) for process in project.processes())
    return [name for name in names if "python_host.py" in name or "typescript_host.js" in name]
