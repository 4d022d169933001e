// The public HTTP interface, with the user's token: in this tab's session storage, in a header, in no address.

const KEPT_AS = "pml.token";

/** An answer that is a problem (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `status ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    // What is wrong with the request stays wrong when it is sent again.
    this.final = status < 500 && status !== 429;
  }
}

/** The door that serves this page. `base` is its address; `storage` keeps the token. */
export class Api {
  constructor(base, storage, send = fetch.bind(globalThis)) {
    this.base = base;
    this.storage = storage;
    this.send = send;
  }

  get token() {
    return this.storage.getItem(KEPT_AS);
  }

  set token(value) {
    if (value) this.storage.setItem(KEPT_AS, value);
    else this.storage.removeItem(KEPT_AS);
  }

  /** What a GET answers. */
  get(parts, query = {}, signal = undefined) {
    return this.request("GET", parts, { query, signal }).then((answer) => answer.json());
  }

  /** What a POST answers. */
  post(parts, body = {}, query = {}) {
    return this.request("POST", parts, { query, body }).then((answer) => answer.json());
  }

  /** The text of a page for operators. */
  text(parts) {
    return this.request("GET", parts, {}).then((answer) => answer.text());
  }

  /** The events of a run, from after one of them. */
  events(runId, session, lastId, signal) {
    const headers = { accept: "text/event-stream", ...(lastId === null ? {} : { "last-event-id": lastId }) };
    return this.request("GET", ["v1", "runs", runId, "events"], { query: { session }, headers, signal });
  }

  /** Any request; throws a `Problem` where the answer is one. */
  async request(method, parts, { query = {}, body, headers = {}, signal } = {}) {
    const address = new URL(parts.map(encodeURIComponent).join("/"), this.base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, value);
    }
    const sent = { ...headers, ...(this.token ? { authorization: `Bearer ${this.token}` } : {}) };
    if (body !== undefined) sent["content-type"] = "application/json";
    const options = {
      method,
      headers: sent,
      signal,
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    };
    const answer = await this.send(
      address,
      body === undefined ? options : { ...options, body: JSON.stringify(body) },
    );
    if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
    return answer;
  }
}
