// A run: its tasks by layers, as they happen.

import { button, facts, known, make, status, table } from "./dom.js";
import { after, layers, unknownRun } from "./fold.js";
import { duration, link, scoreValue, shown, time } from "./format.js";
import { question } from "./pages.js";
import { follow } from "./stream.js";

const SERVED = {
  speculation: "served early",
  joined: "joined an early call",
  repeat: "served again",
  call: "called",
};
const STOP = { reason: "stopped on the dashboard" };
const DRAW_MS = 100;

/** Follows a run for as long as the page shows it. */
export async function run(main, { api, parts, query, signal, tell }) {
  const runId = parts[1];
  const given = query.get("session");
  let state = unknownRun(runId);
  let drawn = 0;
  let timer = null;
  const view = new RunView(main, { api, runId, session: given, tell });
  const draw = () => {
    timer = null;
    drawn = Date.now();
    if (!signal.aborted) view.draw(state);
  };
  const take = (event) => {
    state = after(state, event);
    // A burst of events is drawn once.
    timer ??= setTimeout(draw, Math.max(0, drawn + DRAW_MS - Date.now()));
  };
  const open = (lastId, stop) => api.events(runId, given ?? state.session, lastId, stop);
  let lastId = null;
  while (!signal.aborted) {
    lastId = await follow({ open, take, tell: (text) => tell(text, true), signal, lastId });
    if (timer !== null) clearTimeout(timer);
    draw();
    // The run has ended; it may be scored, or taken up again.
    await view.sent(signal);
  }
}

class RunView {
  constructor(main, context) {
    this.context = context;
    this.parts = {};
    this.told = {};
    this.results = {};
    this.wake = () => {};
    const sections = ["facts", "waits", "tasks", "decisions", "scores", "result"];
    for (const name of sections) this.parts[name] = make("section");
    main.append(
      make("h1", {}, `Run ${context.runId}`),
      ...sections.map((name) => this.parts[name]),
      this.judge(),
    );
  }

  /** Waits until a command was sent from here. */
  sent(signal) {
    return new Promise((resolve) => {
      this.wake = resolve;
      signal.addEventListener("abort", resolve, { once: true });
    });
  }

  draw(state) {
    this.context.session ??= state.session;
    this.part("facts", [
      state.status,
      state.name,
      state.intent,
      state.durationMs,
      state.counts,
      state.error,
      state.mode,
      state.reasons,
    ], () => this.facts(state));
    this.part("waits", state.waits, () => this.waits(state));
    this.part("tasks", state.tasks, () => this.tasks(state));
    this.part(
      "decisions",
      state.decisions,
      () =>
        state.decisions.length
          ? [table("Decisions", ["When", "What"], state.decisions.map((one) => [time(one.at), one.text]))]
          : [],
    );
    this.part("scores", state.scores, () => this.scores(state));
    this.part(
      "result",
      state.result,
      () =>
        state.result === null
          ? []
          : [make("h2", {}, "Result"), make("pre", { tabindex: 0 }, shown(state.result))],
    );
  }

  /** Draws a part anew where it says something else: what has the focus is not taken away for nothing. */
  part(name, value, build) {
    const text = JSON.stringify(value);
    if (this.told[name] === text) return;
    this.told[name] = text;
    const focused = this.parts[name].contains(document.activeElement)
      ? document.activeElement.dataset.key
      : null;
    this.parts[name].replaceChildren(...build());
    if (focused) {
      [...this.parts[name].querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)
        ?.focus();
    }
  }

  facts(state) {
    const counts = state.counts ?? {};
    const live = ["running", "waiting"].includes(state.status);
    return [
      facts([
        ["Status", status(state.status)],
        ["Name", state.name],
        ["Intent", state.intent],
        ["Session", this.context.session],
        ["Started", time(state.startedAt)],
        ["Took", duration(state.durationMs)],
        [
          "Served early",
          "hits" in counts ? `${counts.hits} hits, ${counts.misses} misses, ${counts.wasted} in vain` : null,
        ],
        ["Waiting saved", counts.saved_ms ? duration(counts.saved_ms) : null],
        ["Program", state.mode === "sandbox" ? `in the sandbox: ${state.reasons.join("; ")}` : null],
        ["Error", state.error ? `${state.error.code}: ${state.error.message}` : null],
      ]),
      live
        ? make(
          "p",
          { class: "actions" },
          button("Stop this run", () => this.send("abort", STOP), { "data-key": "abort" }),
        )
        : null,
      state.status === "failed"
        ? make(
          "p",
          { class: "actions" },
          button("Retry what failed", () => this.send("retry", {}), { "data-key": "retry" }),
        )
        : null,
    ].filter(Boolean);
  }

  waits(state) {
    const { api, runId, session, tell } = this.context;
    const asked = Object.values(state.waits).map((one) =>
      one.kind === "approval"
        ? question({ ...one, run_id: runId, session_id: session }, api, tell, async () => {})
        : make(
          "div",
          { class: "card waiting" },
          make(
            "p",
            {},
            `Waits at ${one.checkpoint_id} until ${time(one.deadline_at)}, then: ${one.on_timeout}.`,
          ),
          button("Continue", () => this.send("continue", { checkpoint_id: one.checkpoint_id }), {
            "data-key": one.checkpoint_id,
          }),
        )
    );
    return asked.length ? [make("h2", {}, "Waits for somebody"), ...asked] : [];
  }

  tasks(state) {
    const columns = layers(state.tasks).map((tasks, index) =>
      make(
        "section",
        { class: "layer", "aria-label": `Layer ${index + 1}` },
        make("h3", {}, `Layer ${index + 1}`),
        make("ol", {}, tasks.map((task) => this.task(task))),
      )
    );
    return [
      make("h2", {}, "Tasks"),
      make("div", { class: "layers", tabindex: 0, role: "region", "aria-label": "Tasks by layers" }, columns),
    ];
  }

  task(task) {
    const error = task.error ? `${task.error.code ?? ""} ${task.error.message ?? ""}`.trim() : "";
    const served = ["completed", "running"].includes(task.status) && task.servedBy
      ? SERVED[task.servedBy] ?? ""
      : "";
    const figures = [
      served,
      duration(task.durationMs || undefined),
      task.savedMs ? `saved ${duration(task.savedMs)}` : "",
      task.attempt > 1 ? `try ${task.attempt}` : "",
    ];
    const full = this.results[task.id];
    return make(
      "li",
      { class: `card ${known(task.status)}` },
      make("p", {}, make("strong", {}, task.id), " ", status(task.status)),
      make("p", {}, task.tool),
      task.after.length ? make("p", { class: "faint" }, `after ${task.after.join(", ")}`) : null,
      make("p", { class: "faint" }, figures.filter(Boolean).join(", ")),
      task.early ? make("p", { class: "early" }, task.early) : null,
      error ? make("p", { class: "failed" }, error) : null,
      task.preview && full === undefined ? make("pre", { tabindex: 0 }, task.preview) : null,
      full === undefined ? null : make("pre", { tabindex: 0 }, full),
      task.status === "completed" && full === undefined
        ? button("Whole result", () => this.whole(task.id), {
          "aria-label": `Whole result of ${task.id}`,
          "data-key": task.id,
        })
        : null,
    );
  }

  async whole(taskId) {
    const { api, runId, session, tell } = this.context;
    try {
      this.results[taskId] = shown(
        await api.get(["v1", "runs", runId, "tasks", taskId, "result"], { session }),
      );
      const card = [...this.parts.tasks.querySelectorAll("button")].find((one) => one.dataset.key === taskId);
      card?.replaceWith(make("pre", { tabindex: 0, "data-key": taskId }, this.results[taskId]));
    } catch (error) {
      tell(`The result of ${taskId} cannot be had: ${error.message}`, true);
    }
  }

  scores(state) {
    const rows = Object.values(state.scores).map((
      one,
    ) => [one.name, scoreValue(one), one.source, one.principal, one.comment, time(one.scored_at)]);
    return rows.length ? [table("Scores", ["Name", "Value", "Source", "By", "Comment", "When"], rows)] : [];
  }

  judge() {
    const comment = make("input", { maxlength: 2000 });
    const score = (value) => async () => {
      const body = { name: "helpful", boolean: value, source: "human", comment: comment.value };
      if (await this.send("score", body)) comment.value = "";
    };
    return make(
      "section",
      { "aria-label": "Score this run" },
      make("h2", {}, "Was it helpful?"),
      make(
        "div",
        { class: "actions" },
        make("label", {}, "Comment", comment),
        button("Yes", score(true)),
        button("No", score(false)),
        make("a", { href: link(["runs"]) }, "All runs"),
      ),
    );
  }

  /** Send a command about the run; whether it was taken. What follows from it comes as an event. */
  async send(name, body) {
    const { api, runId, session, tell } = this.context;
    try {
      await api.post(["v1", "runs", runId, name], body, { session });
      tell(`${name}: taken.`);
      this.wake();
      return true;
    } catch (error) {
      tell(`${name}: ${error.message}`, true);
      return false;
    }
  }
}
