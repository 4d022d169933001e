// The lists: runs, approvals, capabilities, tools, health. A page is `show(main, context)`; what it gives is redrawn
// every few seconds where `context.again` is asked for.

import { button, facts, make, status, table } from "./dom.js";
import { callsOf } from "./fold.js";
import { duration, figures, link, shown, summary, time } from "./format.js";

const PAGE = 25;
const NEWEST = 500;
const STATUSES = ["running", "waiting", "completed", "failed", "aborted"];

/** The newest runs; `status`, `session` and `cursor` are in the address. */
export async function runs(main, { api, query, again, signal }) {
  const asked = { status: query.get("status"), session: query.get("session"), cursor: query.get("cursor") };
  const list = make("div");
  main.append(make("h1", {}, "Runs"), chooser(asked), list);
  const draw = async () => {
    const page = await api.get(["v1", "runs"], { ...asked, limit: PAGE }, signal);
    list.replaceChildren(runTable(page.items), pager(asked, page.next_cursor));
  };
  await draw();
  if (!asked.cursor) again(draw);
}

function chooser({ status: chosen, session }) {
  const options = ["", ...STATUSES].map((name) =>
    make("option", { value: name, selected: name === (chosen ?? "") }, name || "all")
  );
  const select = make("select", { name: "status" }, options);
  const input = make("input", { name: "session", value: session ?? "", maxlength: 128, spellcheck: "false" });
  const go = (event) => {
    event.preventDefault();
    location.hash = link(["runs"], { status: select.value, session: input.value.trim() });
  };
  return make(
    "form",
    { submit: go },
    make("label", {}, "Status", select),
    make("label", {}, "Session", input),
    make("button", { type: "submit" }, "Show"),
  );
}

function runTable(items) {
  const columns = [
    "Run",
    "Status",
    "What",
    "Started",
    ["Took", "figure"],
    ["Tasks", "figure"],
    ["Hits", "figure"],
    ["Misses", "figure"],
    ["Saved", "figure"],
  ];
  const rows = items.map((run) => [
    make("a", { href: link(["runs", run.run_id], { session: run.session_id }) }, run.run_id),
    status(run.status, run.error_code),
    run.name ?? run.workflow_type,
    time(run.started_at),
    duration(run.duration_ms),
    `${run.completed}/${run.tasks}`,
    String(run.hits),
    String(run.misses),
    duration(run.saved_ms),
  ]);
  return table("Runs, the newest first", columns, rows);
}

function pager(asked, next) {
  const { status: chosen, session, cursor } = asked;
  return make(
    "p",
    { class: "actions" },
    cursor ? make("a", { href: link(["runs"], { status: chosen, session }) }, "Newest runs") : null,
    next
      ? make("a", { href: link(["runs"], { status: chosen, session, cursor: next }) }, "Older runs")
      : null,
  );
}

/** Calls that wait for a person. */
export async function approvals(main, { api, query, again, signal, tell }) {
  const all = query.get("all") === "true";
  const list = make("div");
  main.append(
    make("h1", {}, "Approvals"),
    make(
      "p",
      {},
      make(
        "a",
        { href: link(["approvals"], { all: all ? "" : "true" }) },
        all ? "Only open ones" : "Settled ones too",
      ),
    ),
    list,
  );
  let drawn = "";
  const draw = async () => {
    const { items } = await api.get(["v1", "approvals"], { all: all ? "true" : "", limit: 100 }, signal);
    const text = JSON.stringify(items);
    // Nobody's reason is taken out of the field while it is typed.
    if (text === drawn) return;
    drawn = text;
    list.replaceChildren(
      ...(items.length
        ? items.map((item) => question(item, api, tell, draw))
        : [make("p", {}, "Nobody is asked anything.")]),
    );
  };
  await draw();
  again(draw);
}

/** One question to a person: every call that it is about, with its arguments, and the two answers. */
export function question(asked, api, tell, settled) {
  const calls = callsOf(asked);
  const reason = make("input", { maxlength: 2000 });
  const computed = make("input", { type: "checkbox" });
  const alone = calls.length === 1;
  const what = alone ? calls[0].tool : `${calls.length} calls`;
  const answer = (word) => async () => {
    const said = { reason: reason.value };
    if (word === "approve" && computed.checked) said.computed = true;
    try {
      await api.post(["v1", "approvals", asked.approval_id, word], said, { session: asked.session_id });
      tell(`${what} of ${asked.run_id}: ${word === "approve" ? "approved" : "rejected"}.`);
      await settled();
    } catch (error) {
      tell(`It was not ${word === "approve" ? "approved" : "rejected"}: ${error.message}`, true);
    }
  };
  const open = (asked.status ?? "open") === "open";
  const name = alone ? `${what}, ${task(calls[0])}` : `${what} of ${asked.run_id}`;
  const may = alone ? "May this call run?" : "May these calls run?";
  return make(
    "section",
    { class: `card ${open ? "waiting" : ""}`, "aria-label": name },
    make("h3", {}, `${open ? may : `${asked.status}:`} ${what}`),
    facts([
      ["Run", make("a", { href: link(["runs", asked.run_id], { session: asked.session_id }) }, asked.run_id)],
      ["Why it is asked", asked.message],
      ["What of the run has begun", asked.calls?.length ? "nothing" : ""],
      ["Begun by", asked.principal],
      ["Until", time(asked.expires_at)],
      ["Decided by", asked.decided_by],
      ["Reason", asked.reason],
    ]),
    calls.flatMap(asksFor),
    asked.omitted ? make("p", {}, `And ${asked.omitted} more calls, each in its turn.`) : null,
    open
      ? make(
        "div",
        { class: "actions" },
        asked.calls?.some((call) => !call.arguments_hash)
          ? make("label", {}, computed, "Also arguments that nobody knows yet")
          : null,
        make("label", {}, "Reason", reason),
        button("Approve", answer("approve"), { "aria-label": `Approve ${name}` }),
        button("Reject", answer("reject"), { "aria-label": `Reject ${name}` }),
      )
      : null,
  );
}

const task = (call) => call.task_id ? `task ${call.task_id}` : "any call";

/** One call of a question. */
function asksFor(call) {
  return [
    facts([
      ["Call", `${call.tool}, ${task(call)}${call.conditional ? " (may never come)" : ""}`],
      ["Effect", call.effect],
      ["Touches", (call.touches ?? []).join(", ")],
      ["What the tool says of itself", call.description],
      ...Object.entries(call.computed || {}).map(([name, source]) => [`${name} comes from`, source]),
    ]),
    make("p", { class: "faint" }, "Arguments, without secrets:"),
    make("pre", { tabindex: 0 }, shown(call.arguments)),
  ];
}

/** What was learned. */
export async function capabilities(main, { api, signal }) {
  const { items } = await api.get(["v1", "capabilities"], {}, signal);
  const rows = items.map((item) => [
    item.name,
    item.not_learned ? `never learned: ${item.not_learned}` : item.status,
    item.intent ?? "",
    item.tools.join(", "),
    item.parameters.map((one) => one.name).join(", "),
    item.approval,
    item.speculable ? "yes" : "no",
    `${item.successes}/${item.runs}`,
  ]);
  main.append(
    make("h1", {}, "Capabilities"),
    table("Learned and drafted capabilities", [
      "Name",
      "State",
      "Intent",
      "Tools",
      "Parameters",
      "Approval",
      "May run early",
      ["Went well", "figure"],
    ], rows),
  );
}

/** What may be called, and what may be called early. */
export async function tools(main, { api, signal }) {
  const { items } = await api.get(["v1", "tools"], {}, signal);
  const rows = items.map((item) => [
    item.tool ?? item.server,
    item.allowed ? "yes" : item.asks_person ? "asks a person" : "no",
    item.speculable ? "yes" : "no",
    item.effect ?? "",
    item.scope ?? "",
    item.why ?? "",
    item.description ?? "",
  ]);
  main.append(
    make("h1", {}, "Tools"),
    table("Tools of the servers", [
      "Tool",
      "May run",
      "May run early",
      "Effect",
      "Scope",
      "Why",
      "What it says of itself",
    ], rows),
  );
}

/** Whether this door is ready, what the newest runs came to, and the door's own figures. */
export async function health(main, { api, again, signal }) {
  const list = make("div");
  main.append(make("h1", {}, "Health"), list);
  const draw = async () => {
    const ready = await api.get(["readyz"], {}, signal).catch((error) => ({
      status: "not ready",
      why: error.message,
    }));
    const newest = await api.get(["v1", "runs"], { limit: NEWEST }, signal);
    // Most figures belong to other workers; what this one never counted says nothing.
    const counted = figures(await api.text(["metrics"])).filter(([, , value]) => Number(value) !== 0);
    list.replaceChildren(
      facts(Object.entries(ready).map(([name, value]) => [name, shown(value)])),
      make("h2", {}, `The newest runs, at most ${NEWEST}`),
      facts(summary(newest.items)),
      table("Figures of this gateway; the other workers have addresses of their own", ["Figure", "Of", [
        "Value",
        "figure",
      ]], counted),
    );
  };
  await draw();
  again(draw);
}
