// Which page is shown, and with whose token.

import { Api } from "./api.js";
import { make } from "./dom.js";
import { place } from "./format.js";
import { approvals, capabilities, health, runs, tools } from "./pages.js";
import { run } from "./run.js";
import { waiting } from "./stream.js";

const AGAIN_MS = 5000;
// Of a slow store, lists take at most a tenth of the time.
const SHARE = 10;
const PAGES = { runs, approvals, capabilities, tools, health };

const main = document.getElementById("content");
const notice = document.getElementById("notice");
const signOut = document.getElementById("sign-out");
const api = new Api(new URL("../", document.baseURI), sessionStorage);
let stop = new AbortController();

function tell(text, problem = false) {
  delete notice.dataset.of;
  notice.textContent = text;
  notice.classList.toggle("problem", problem);
}

async function show() {
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  const { parts, query } = place(location.hash || "#/runs");
  const name = parts[0] in PAGES ? parts[0] : "runs";
  const page = name === "runs" && parts.length > 1 ? run : PAGES[name];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${parts.length > 1 ? parts[1] : name} · PML`;
  signOut.hidden = !api.token;
  const body = make("div");
  main.replaceChildren(body);
  tell("");
  try {
    await page(body, { api, parts, query, signal, tell, again: (draw) => again(draw, signal) });
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) askForToken(error);
    else tell(error.message, true);
  }
}

/** Draws again every few seconds, while the page is shown and somebody can see it; less often what takes long. */
async function again(draw, signal) {
  let pauseMs = AGAIN_MS;
  for (;;) {
    await waiting(pauseMs, signal);
    if (signal.aborted) return;
    if (document.hidden) continue;
    const began = performance.now();
    try {
      await draw();
      if (notice.dataset.of === "again" && !signal.aborted) tell("");
    } catch (error) {
      if (signal.aborted) return;
      tell(`This is not up to date: ${error.message}`, true);
      notice.dataset.of = "again";
    }
    pauseMs = Math.max(AGAIN_MS, SHARE * (performance.now() - began));
  }
}

function askForToken(error) {
  const input = make("input", {
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    id: "token",
  });
  const enter = (event) => {
    event.preventDefault();
    api.token = input.value.trim();
    show();
  };
  const why = api.token
    ? error.message
    : "A token is needed. `pml token create` makes one; this tab keeps it until it is closed.";
  api.token = null;
  signOut.hidden = true;
  main.replaceChildren(
    make("h1", {}, "Who are you?"),
    make("p", {}, why),
    make(
      "form",
      { submit: enter },
      make("label", { for: "token" }, "Token", input),
      make("button", { type: "submit" }, "Go on"),
    ),
  );
  input.focus();
}

signOut.addEventListener("click", () => {
  api.token = null;
  show();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  // The part after # says which page is shown.
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", async () => {
  main.focus();
  await show();
});
show();
