// Server-sent events over fetch: an EventSource cannot send a token but in its address, and there it would stay.

/** Events in what came so far, and the rest that is not whole yet. */
export function parse(text) {
  const events = [];
  const blocks = text.replace(/\r\n?/g, "\n").split("\n\n");
  const rest = blocks.pop();
  for (const block of blocks) {
    const event = { id: null, type: "message", data: [] };
    for (const line of block.split("\n")) {
      const found = /^(id|event|data)(?:: ?(.*))?$/.exec(line);
      if (!found) continue;
      const [, name, value = ""] = found;
      if (name === "id") event.id = value;
      else if (name === "event") event.type = value;
      else event.data.push(value);
    }
    if (event.data.length) events.push({ ...event, data: event.data.join("\n") });
  }
  return { events, rest };
}

/** How long to wait before the stream is opened again: longer each time, at most 15 s. */
export function backOffMs(failures) {
  return Math.min(15000, 500 * 2 ** failures);
}

const ENDS = new Set(["run.completed", "run.failed", "run.aborted"]);

/**
 * Follow a run until it ends, across lost connections, each time from after the last event that came.
 * `open(lastId, signal)` gives a response; `take(event)` gets each event; `tell(text)` what goes wrong.
 * The answer is the id of the last event, to go on from (`lastId`) when there may be more.
 */
export async function follow({ open, take, tell, signal, lastId = null, pause = waiting }) {
  let failures = 0;
  let over = false;
  while (!over && !signal.aborted) {
    try {
      const answer = await open(lastId, signal);
      if (answer.status === 204) return lastId;
      for await (const event of received(answer.body)) {
        failures = 0;
        lastId = event.id ?? lastId;
        take(JSON.parse(event.data));
        over = ENDS.has(event.type);
      }
    } catch (error) {
      if (signal.aborted) return lastId;
      if (error.final) throw error;
      tell(`The connection was lost; it is opened again. ${error.message ?? ""}`);
    }
    if (!over) await pause(backOffMs(failures++), signal);
  }
  return lastId;
}

async function* received(body) {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of pieces(body)) {
    // A line may end between two pieces, so a lone CR waits for what follows it.
    text += decoder.decode(piece, { stream: true });
    const held = text.endsWith("\r") ? "\r" : "";
    const { events, rest } = parse(held ? text.slice(0, -1) : text);
    text = rest + held;
    yield* events;
  }
}

async function* pieces(body) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Waits so long, or until it is not wanted any more. */
export function waiting(ms, signal) {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, signal.aborted ? 0 : ms);
    signal.addEventListener("abort", over);
  });
}
