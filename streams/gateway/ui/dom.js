// Elements out of text. Nothing here parses HTML: what tools and agents said is only ever text.

/** An element; `options` are attributes, and functions are listeners (`click`). Children are nodes or text. */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table with a caption; `columns` are names, or [name, "figure"]. A cell is a node or text. */
export function table(caption, columns, rows) {
  const kinds = columns.map((column) => (Array.isArray(column) ? column : [column, null]));
  const head = kinds.map(([name, kind]) => make("th", { scope: "col", class: kind }, name));
  const body = rows.map((row) =>
    make("tr", {}, row.map((cell, place) => make("td", { class: kinds[place][1] }, cell ?? "")))
  );
  const parts = [
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, head)),
    make("tbody", {}, body),
  ];
  const found = make(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    make("table", {}, parts),
  );
  return rows.length ? found : make("p", { class: "faint" }, `${caption}: none.`);
}

/** Names and what they are; what is absent is left out. */
export function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", {}, told.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** A button that cannot be pressed again while what it began goes on. */
export function button(text, action, options = {}) {
  const pressed = async () => {
    found.disabled = true;
    try {
      await action();
    } finally {
      found.disabled = false;
    }
  };
  const found = make("button", { type: "button", click: pressed, ...options }, text);
  return found;
}

/** A status in words; its colour says nothing more. */
export function status(name, more = "") {
  return make("span", { class: `status ${known(name)}` }, more ? `${name}, ${more}` : name);
}

const STATUSES = [
  "queued",
  "pending",
  "running",
  "waiting",
  "completed",
  "failed",
  "aborted",
  "skipped",
  "unknown",
];

/** The class of a status; a word that is none of ours is no class. */
export function known(name) {
  return STATUSES.includes(name) ? name : "";
}
