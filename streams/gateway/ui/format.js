// Values as people read them. Pure: the same value gives the same text.

export const RESULT_CHARACTERS = 20000;

/** Milliseconds as `12 ms`, `1.5 s`, `2 min 3 s`; nothing for what is not a number. */
export function duration(ms) {
  if (typeof ms !== "number" || !Number.isFinite(ms)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A time as `2026-01-31 12:00:00` UTC; what is no time stays as it is. */
export function time(text) {
  const found = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})/.exec(text ?? "");
  return found ? `${found[1]} ${found[2]} UTC` : String(text ?? "");
}

/** Any value as text of at most so many characters. */
export function shown(value, most = RESULT_CHARACTERS) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  return text.length > most ? `${text.slice(0, most)}\n… ${text.length - most} characters more` : text;
}

/** The value of a score: a number, a category, or yes and no. */
export function scoreValue(score) {
  const value = score.value ?? score.number ?? score.category ?? score.boolean;
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value ?? "");
}

/** Where a page is: `#/runs/run_1?session=s` as its parts and what it asks for. */
export function place(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, query: new URLSearchParams(query) };
}

/** The hash of a place; every part is encoded. */
export function link(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) =>
    value !== null && value !== undefined && value !== ""
  );
  const asked = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${asked ? `?${asked}` : ""}`;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The figures of PML in a Prometheus text: [name, labels, value], in its order. */
export function figures(text) {
  const line = /^(pml_[a-z0-9_]+?)(?:\{(.*)\})? ([-+0-9.eE]+|NaN|[+-]Inf)$/;
  return text
    .split("\n")
    .map((row) => line.exec(row))
    .filter((found) => found && !/_(bucket|created)$/.test(found[1]))
    .map(([, name, labels, value]) => [name, labels ?? "", value]);
}

/** What runs of a list came to together: [name, text], a share only where there is something to share. */
export function summary(items) {
  const sum = (name) => items.reduce((total, item) => total + (item[name] ?? 0), 0);
  const counts = {};
  for (const item of items) counts[item.status] = (counts[item.status] ?? 0) + 1;
  const hits = sum("hits");
  const asked = hits + sum("misses");
  return [
    ["Runs", `${items.length}`],
    ...Object.keys(counts).sort().map((status) => [status, `${counts[status]}`]),
    ["Hits", asked ? `${hits} of ${asked} (${Math.round((100 * hits) / asked)} %)` : "none was possible"],
    ["Ran early in vain", `${sum("wasted")}`],
    ["Waiting saved", duration(sum("saved_ms"))],
  ];
}
