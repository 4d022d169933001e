// The process that runs one TypeScript program in Deno, without permissions; it answers as python_host.py does.
//
// The program shares this realm, so everything of it that is used here is taken before the program is read, and
// what could tell one run from another (clocks, random numbers, threads, the collector) is taken away.

const CALLS_MAX = 200;
const KEPT = new Set([
  "Object", "Function", "Array", "Number", "parseFloat", "parseInt", "Infinity", "NaN", "undefined", "Boolean",
  "String", "Symbol", "Date", "Promise", "RegExp", "Error", "AggregateError", "EvalError", "RangeError",
  "ReferenceError", "SyntaxError", "TypeError", "URIError", "globalThis", "JSON", "Math", "ArrayBuffer",
  "Uint8Array", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array", "BigUint64Array",
  "BigInt64Array", "Uint8ClampedArray", "Float32Array", "Float64Array", "DataView", "Map", "BigInt", "Set",
  "Iterator", "WeakMap", "WeakSet", "Proxy", "Reflect", "decodeURI", "decodeURIComponent", "encodeURI",
  "encodeURIComponent", "escape", "unescape", "isFinite", "isNaN", "queueMicrotask", "TextDecoder",
  "TextEncoder", "URL", "URLSearchParams", "atob", "btoa", "structuredClone",
]);

const { stdin, stdout, exit } = Deno;
const later = globalThis.setTimeout;
const { stringify, parse } = JSON;
const { defineProperty, getOwnPropertyNames, getPrototypeOf, hasOwn } = Object;
const { construct, get: fieldOf } = Reflect;
const [RealDate, RealError, RealPromise, RealProxy, RealString, RealTypeError] =
  [Date, Error, Promise, Proxy, String, TypeError];
const uncurried = (method) => Function.prototype.call.bind(method);
const encode = uncurried(TextEncoder.prototype.encode);
const decode = uncurried(TextDecoder.prototype.decode);
const part = uncurried(Uint8Array.prototype.subarray);
const copied = uncurried(Uint8Array.prototype.set);
const matched = uncurried(RegExp.prototype.exec);
const then = uncurried(Promise.prototype.then);
const Bytes = Uint8Array;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const PLACE = /data:application\/typescript[^\n]*?:(\d+):\d+\)?(?:\n|$)/;

const chunk = new Bytes(65536);

// One line in; nothing comes after it before it is answered. Room grows by doubling.
function hear() {
  let [line, length] = [new Bytes(65536), 0];
  for (;;) {
    const read = stdin.readSync(chunk);
    if (read === null) exit(0);
    if (length + read > line.length) {
      const longer = new Bytes(2 * (length + read));
      copied(longer, part(line, 0, length), 0);
      line = longer;
    }
    copied(line, part(chunk, 0, read), length);
    length += read;
    if (line[length - 1] === 10) return parse(decode(decoder, part(line, 0, length - 1)));
  }
}

function write(text) {
  const bytes = encode(encoder, text);
  for (let at = 0; at < bytes.length;) at += stdout.writeSync(part(bytes, at));
}

write("ready\n");
const start = hear();
const { word, bytes_max: bytesMax } = start;

function say(text, what) {
  if (text.length > bytesMax) {
    fail("OUTPUT_TOO_LARGE", `${what} have ${text.length} bytes (at most ${bytesMax})`, null);
  }
  write(`${word} ${text}\n`);
}

function fail(code, message, line) {
  const told = message.length > 2000 ? `${message.slice(0, 2000)}…` : message;
  write(`${word} {"error":{"code":${stringify(code)},"message":${stringify(told)},"line":${line}}}\n`);
  exit(0);
}

// A value as JSON text; the program may have changed what its own objects say, but not the text's shape.
function text(value, what) {
  const found = stringify(value);
  if (found === undefined) return "null";
  if (typeof found !== "string") throw new RealTypeError(`${what} is no JSON`);
  return found;
}

const calls = [];
const timers = [];
let [handed, ended, clock, timerIds] = [0, null, 0, 0];

function call(kind, tool, given) {
  const written = objectOf(tool, given);
  const item = { __proto__: null, line: `{"${kind}":${stringify(tool)},"arguments":${written}}` };
  const promise = new RealPromise((resolve, reject) => {
    item.resolve = resolve;
    item.reject = reject;
  });
  then(promise, undefined, () => {});
  calls[calls.length] = item;
  return promise;
}

// What a tool or capability is given, as JSON text.
function objectOf(tool, given) {
  if (given.length > 1) throw new RealTypeError(`${tool} takes one object`);
  const written = given.length === 0 || given[0] === undefined ? "{}" : text(given[0], `what ${tool} is given`);
  if (written[0] !== "{") throw new RealTypeError(`${tool} takes an object`);
  return written;
}

class ToolError extends Error {
  constructor({ code, message }) {
    super(`${code}: ${message}`);
    this.code = code;
    this.name = "ToolError";
  }
}

function exchange() {
  let lines = "";
  const end = calls.length - handed > CALLS_MAX ? handed + CALLS_MAX : calls.length;
  for (let at = handed; at < end; at++) lines += (at > handed ? "," : "") + calls[at].line;
  say(`{"calls":[${lines}]}`, "the calls of one step");
  const { results } = hear();
  for (let at = handed; at < end; at++) {
    const result = results[at - handed];
    if (hasOwn(result, "error")) calls[at].reject(new ToolError(result.error));
    else calls[at].resolve(result.value);
    calls[at] = null;
  }
  handed = end;
}

// Runs whenever the program can do nothing more by itself.
function pump() {
  if (ended !== null && handed === calls.length) {
    if (hasOwn(ended, "error")) blame(ended.error);
    let value;
    try {
      value = text(ended.value, "the result");
    } catch (error) {
      blame(error);
    }
    say(`{"value":${value}}`, "its result");
    exit(0);
  }
  if (handed < calls.length) exchange();
  else if (timers.length > 0) fire();
  else fail("PROGRAM_ERROR", "the program waits for what never comes", null);
  later(pump, 0);
}

function blame(error) {
  let [told, line] = ["an error that says nothing", "null"];
  try {
    const isError = error instanceof RealError;
    told = isError ? `${error.name}: ${error.message}` : RealString(error);
    const place = isError ? matched(PLACE, RealString(error.stack)) : null;
    if (place !== null) line = place[1];
  } catch {
    // Whatever the program threw has no text.
  }
  fail("PROGRAM_ERROR", `${told}`, line);
}

// No time passes in the sandbox: what waits for it goes on when nothing else can, the shortest wait first.
function fire() {
  let next = 0;
  for (let at = 1; at < timers.length; at++) if (timers[at].due < timers[next].due) next = at;
  const { due, run } = timers[next];
  for (let at = next; at < timers.length - 1; at++) timers[at] = timers[at + 1];
  timers.length -= 1;
  clock = due;
  try {
    run();
  } catch (error) {
    blame(error);
  }
}

function absent(what) {
  return () => {
    throw new RealTypeError(`${what} is not to be had in the sandbox, where every step is repeatable; call a tool`);
  };
}

function tidy() {
  for (const name of getOwnPropertyNames(globalThis)) if (!KEPT.has(name)) delete globalThis[name];
  const fixed = (owner, name, value) => defineProperty(owner, name, { value, writable: true, configurable: true });
  fixed(Math, "random", absent("Math.random"));
  const noClock = absent("a clock");
  const dated = new RealProxy(RealDate, {
    apply: noClock,
    construct: (target, given, made) => given.length === 0 ? noClock() : construct(target, given, made),
    get: (target, name, receiver) => name === "now" ? noClock : fieldOf(target, name, receiver),
  });
  fixed(RealDate.prototype, "constructor", dated);
  fixed(globalThis, "Date", dated);
  const quiet = () => {};
  fixed(globalThis, "console", { log: quiet, error: quiet, warn: quiet, info: quiet, debug: quiet });
  fixed(globalThis, "setTimeout", (run, wait_ms = 0, ...given) => {
    timers[timers.length] = { id: ++timerIds, due: clock + (+wait_ms || 0), run: () => run(...given) };
    return timerIds;
  });
  fixed(globalThis, "clearTimeout", (id) => {
    for (let at = 0; at < timers.length; at++) if (timers[at].id === id) timers[at].run = quiet;
  });
}

let linked = {};
const tools = new RealProxy({}, {
  get: (_, server) => typeof server !== "string" ? undefined : new RealProxy({}, {
    get: (_, tool) => typeof tool !== "string" ? undefined : (...given) => call("tool", `${server}:${tool}`, given),
  }),
});
const capabilities = new RealProxy({}, {
  get: (_, name) => {
    if (typeof name !== "string") return undefined;
    if (!hasOwn(linked, name)) return (...given) => call("capability", name, given);
    return (...given) => linked[name](tools, capabilities, parse(objectOf(name, given)));
  },
});

globalThis.addEventListener("unhandledrejection", (event) => event.preventDefault());
tidy();
const own = new Set(getOwnPropertyNames(globalThis));
for (const name of Object.keys(start.context)) {
  const named = name !== "args" && !own.has(name);
  if (named) defineProperty(globalThis, name, { value: start.context[name], writable: true, configurable: true });
}
const module = `export default async (mcp, capabilities, args) => {${start.source}\n}${start.more}`;
let program = null;
try {
  program = await import(`data:application/typescript;charset=utf-8,${encodeURIComponent(module)}`);
} catch (error) {
  blame(error);
}
linked = program.$linked ?? linked;
then(
  program.default(tools, capabilities, start.context),
  (value) => (ended = { __proto__: null, value }),
  (error) => (ended = { __proto__: null, error }),
);
later(pump, 0);
