// A run as its events tell it. Pure: `after` gives the next state and changes nothing.

const ENDS = { "run.completed": "completed", "run.failed": "failed", "run.aborted": "aborted" };

/** A run of which nothing is known yet. */
export function unknownRun(runId) {
  return {
    runId,
    session: null,
    status: "queued",
    intent: null,
    name: null,
    startedAt: null,
    durationMs: null,
    error: null,
    result: null,
    mode: null,
    reasons: [],
    counts: null,
    tasks: {},
    calls: {},
    decisions: [],
    waits: {},
    scores: {},
    events: 0,
  };
}

/** The run after one more event. */
export function after(run, event) {
  const next = { ...run, session: run.session ?? event.session_id, events: run.events + 1 };
  const data = event.data;
  if (event.type in ENDS) return ended(next, event.type, data);
  const handler = HANDLERS[event.type];
  return handler ? handler(next, data, event) : next;
}

/** What a request to a person is about: several calls, or the one that it describes itself. */
export function callsOf(asked) {
  return asked.calls?.length ? asked.calls : [asked];
}

/** Tasks by layer; what no layer is known of stands behind what it waits for. */
export function layers(tasks) {
  const depths = {};
  const depth = (id, seen) => {
    if (id in depths) return depths[id];
    const task = tasks[id];
    if (task.layer !== null) return (depths[id] = task.layer);
    if (seen.has(id)) return 0;
    const before = task.after.filter((name) => name in tasks).map((name) =>
      depth(name, new Set([...seen, id]))
    );
    return (depths[id] = before.length ? Math.max(...before) + 1 : 0);
  };
  const found = [];
  for (const id of Object.keys(tasks)) (found[depth(id, new Set())] ??= []).push(tasks[id]);
  return Array.from(found, (layer) => layer ?? []);
}

/** The tasks that a task waits for: what it names, what its arguments refer to, what its conditions read. */
export function waitsFor(task, ids, decisions) {
  const found = new Set(task.depends_on ?? []);
  const read = (value) => {
    if (typeof value === "string") {
      for (const word of value.match(/[A-Za-z_][\w\-#/]*/g) ?? []) if (ids.has(word)) found.add(word);
    }
  };
  const walk = (value) => {
    if (value === null || typeof value !== "object") return;
    if (value.type === "reference") read(value.expression);
    if (value.type === "expression") read(value.code);
    Object.values(value).forEach(walk);
  };
  walk(task.arguments ?? {});
  for (const condition of [task.condition ?? []].flat()) {
    for (const decision of decisions) if (decision.id === condition.node) read(decision.expression);
  }
  found.delete(task.id);
  return [...found].filter((id) => ids.has(id));
}

function planned(run, data, whole) {
  const definition = data.definition ?? {};
  const written = definition.tasks ?? [];
  const ids = new Set([...written.map((task) => task.id), ...(whole ? [] : Object.keys(run.tasks))]);
  const tasks = whole ? {} : { ...run.tasks };
  for (const task of written) {
    const before = run.tasks[task.id];
    tasks[task.id] = before && (!data.kept || task.id in data.kept)
      ? before
      : fresh(task.id, task.tool ?? task.capability ?? "", waitsFor(task, ids, definition.decisions ?? []));
  }
  return { ...run, tasks };
}

function fresh(id, tool, before = []) {
  return {
    id,
    tool,
    after: before,
    layer: null,
    status: "pending",
    attempt: 0,
    servedBy: null,
    durationMs: null,
    savedMs: null,
    preview: null,
    error: null,
    early: null,
  };
}

function changed(run, id, changes) {
  return { ...run, tasks: { ...run.tasks, [id]: { ...(run.tasks[id] ?? fresh(id, "")), ...changes } } };
}

function ended(run, type, data) {
  return {
    ...run,
    status: ENDS[type],
    durationMs: data.duration_ms ?? null,
    error: data.error ?? null,
    result: data.result ?? null,
    counts: data.counts ?? null,
    waits: {},
  };
}

function decided(run, text, event) {
  return { ...run, decisions: [...run.decisions, { text, at: event.occurred_at }] };
}

function attempted(run, data, status) {
  return changed(run, data.task_id, {
    status,
    layer: data.layer,
    tool: data.tool,
    attempt: data.attempt,
    servedBy: data.served_by ?? "call",
    durationMs: data.duration_ms ?? null,
    savedMs: data.saved_ms ?? null,
    preview: data.preview ?? null,
    error: data.error ?? null,
  });
}

function opened(run, ids) {
  return (ids ?? []).reduce(
    (found, id) => changed(found, id, { status: "pending", error: null, preview: null }),
    run,
  );
}

function answered(run, question, status) {
  const { [question]: _, ...waits } = run.waits;
  return { ...run, status, waits };
}

function early(run, callId, state) {
  const id = run.calls[callId];
  return id in run.tasks ? changed(run, id, { early: state }) : run;
}

const who = (data) => data.decided_by || "nobody in time";

const HANDLERS = {
  "run.started": (run, data, event) =>
    planned(
      {
        ...run,
        status: "running",
        name: data.name ?? null,
        intent: data.intent ?? null,
        startedAt: event.occurred_at,
      },
      data,
      true,
    ),
  "run.expanded": (run, data) =>
    planned(
      { ...run, mode: data.mode ?? "dag", reasons: data.reasons ?? run.reasons },
      data,
      data.mode !== "sandbox",
    ),
  "run.replanned": (run, data, event) =>
    decided(planned({ ...run, status: "running" }, data, true), `replanned by ${who(data)}`, event),
  "run.retried": (run, data, event) =>
    decided(
      opened({ ...run, status: "running", error: null }, data.task_ids),
      `retried by ${who(data)}`,
      event,
    ),
  "layer.released": (run, data) =>
    data.task_ids.reduce((found, id) => changed(found, id, { layer: data.layer }), run),
  "task.started": (run, data) => attempted(run, data, "running"),
  "task.completed": (run, data) => attempted(run, data, "completed"),
  "task.failed": (run, data) => attempted(run, data, data.final === false ? "pending" : "failed"),
  "task.unknown": (run, data) => attempted(run, data, "unknown"),
  "task.skipped": (run, data) =>
    changed(run, data.task_id, {
      status: "skipped",
      layer: data.layer,
      tool: data.tool,
      error: { code: data.reason, message: data.because },
    }),
  "task.resolved": (run, data, event) => {
    const status = { done: "completed", not_done: "failed", retry: "pending" }[data.resolution];
    const settled = changed(opened(run, data.task_ids), data.task_id, {
      status,
      preview: data.preview || null,
      error: data.error ?? null,
    });
    return decided(settled, `${data.task_id} resolved as ${data.resolution} by ${who(data)}`, event);
  },
  "branch.taken": (run, data, event) => decided(run, `${data.decision_id} is ${data.outcome}`, event),
  "checkpoint.reached": (run) => ({ ...run, status: "waiting" }),
  "decision.required": (run, data) => ({
    ...run,
    status: "waiting",
    waits: { ...run.waits, [data.checkpoint_id]: { kind: "checkpoint", ...data } },
  }),
  "decision.made": (run, data, event) =>
    decided(
      answered(run, data.checkpoint_id, data.run_status ?? "running"),
      `${data.choice} by ${who(data)}`,
      event,
    ),
  "approval.requested": (run, data) =>
    callsOf(data).filter((call) => call.task_id).reduce(
      (found, call) =>
        changed(found, call.task_id, { layer: call.layer, tool: call.tool, status: "waiting" }),
      {
        ...run,
        status: "waiting",
        waits: { ...run.waits, [data.approval_id]: { kind: "approval", ...data } },
      },
    ),
  "approval.granted": (run, data, event) => approval(run, data, event, "approved"),
  "approval.rejected": (run, data, event) => approval(run, data, event, "rejected"),
  "approval.expired": (run, data, event) => approval(run, data, event, "not decided"),
  "speculation.started": (run, data) => {
    const calls = { ...run.calls, [data.call_id]: data.task_id };
    return early({ ...run, calls }, data.call_id, "runs early");
  },
  "speculation.ready": (run, data) => early(run, data.call_id, "waits early"),
  "speculation.ended": (run, data) =>
    early(run, data.call_id, data.fate === "served" ? "served early" : `early in vain: ${data.reason}`),
  "run.scored": (run, data, event) => ({
    ...run,
    scores: {
      ...run.scores,
      [data.name]: { ...data, principal: event.principal, scored_at: event.occurred_at },
    },
  }),
};

function approval(run, data, event, word) {
  const calls = callsOf(run.waits[data.approval_id] ?? data);
  const next = calls.filter((call) => call.task_id).reduce(
    (found, call) => changed(found, call.task_id, { status: "pending" }),
    answered(run, data.approval_id, data.run_status ?? "running"),
  );
  const what = calls.length === 1 ? calls[0].task_id || calls[0].tool : `${calls.length} calls`;
  const more = data.computed ? ", whatever its arguments" : "";
  return decided(next, `${what} ${word}${more} by ${who(data)}`, event);
}
