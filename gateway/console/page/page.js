// The page of the console. Whatever comes from the network is set as text, never as markup:
// clients choose the names of topics, principals and libraries.

const API = "/api/v1";
const ROWS = 100; // of a table at a time: more are slow to draw, and nobody reads them
const HISTORY = 300; // seconds in the charts
const byId = (id) => document.getElementById(id);

// -- numbers ----------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en");

function count(value) {
  if (value === null || value === undefined) return "–";
  return value >= 100 ? whole.format(Math.round(value)) : String(Math.round(value * 10) / 10);
}

function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 2 : 1)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

// -- the API ----------------------------------------------------------------------------------

let token = sessionStorage.getItem("token");
let asking = null; // the question for the token, while it is open

async function request(path, options = {}) {
  for (;;) {
    const headers = { ...(options.headers ?? {}) };
    if (token) headers.Authorization = `Bearer ${token}`;
    const answer = await fetch(API + path, { ...options, headers });
    if (answer.status !== 401) return answer;
    await askForToken();
  }
}

async function read(path) {
  const answer = await request(path);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

async function act(path) {
  const answer = await request(path, { method: "POST", headers: { "x-gateway-action": "1" } });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
}

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("ask-token");
    dialog.addEventListener("close", () => {
      token = byId("token").value.trim();
      byId("token").value = "";
      sessionStorage.setItem("token", token);
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

// -- tables -----------------------------------------------------------------------------------

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// A column: title, text of a row, and optionally its class, or what makes its content.
function fill(table, caption, columns, rows, { empty = "Nothing.", mark, sort } = {}) {
  // A row that has the focus would lose it: redraw once it is left.
  if (table.contains(document.activeElement) && table.tBodies.length && sort === undefined) return;
  const head = element("thead");
  const titles = head.appendChild(element("tr"));
  for (const column of columns) titles.append(heading(column, sort));
  const body = element("tbody");
  for (const row of rows.slice(0, ROWS)) {
    const line = body.appendChild(element("tr"));
    if (mark) Object.assign(line.dataset, mark(row));
    for (const column of columns) line.append(cell(column, row));
  }
  if (!rows.length) {
    const none = body.appendChild(element("tr")).appendChild(element("td", empty, "empty"));
    none.colSpan = columns.length;
  }
  table.replaceChildren(element("caption", caption), head, body);
}

function heading(column, sort) {
  const made = element("th", undefined, column.className);
  made.scope = "col";
  if (!sort || !column.sort) {
    made.textContent = column.title;
    return made;
  }
  const button = made.appendChild(element("button", column.title));
  button.type = "button";
  button.dataset.sort = column.sort;
  const order = sort.descending ? "descending" : "ascending";
  made.setAttribute("aria-sort", sort.by === column.sort ? order : "none");
  button.addEventListener("click", () => sort.choose(column.sort));
  return made;
}

function cell(column, row) {
  const made = element("td", undefined, column.className);
  const content = column.show(row);
  if (content instanceof Node) made.append(content);
  else made.textContent = content ?? "–";
  if (column.className === "name") made.title = made.textContent;
  return made;
}

const number = (title, show, sort) => ({ title, show, sort, className: "number" });
const named = (title, show, sort) => ({ title, show, sort, className: "name" });

function bar(value, most) {
  const made = element("meter");
  made.max = most || 1;
  made.value = value;
  made.setAttribute("aria-label", "share of the busiest");
  return made;
}

// -- the second -------------------------------------------------------------------------------

const history = [];

function tile(id, value, text) {
  const shown = byId(id);
  shown.textContent = text;
  shown.dataset.value = value;
}

function showNow(now) {
  tile("rate-to-broker", now.to_broker.messages, `${count(now.to_broker.messages)}/s`);
  tile("rate-to-client", now.to_client.messages, `${count(now.to_client.messages)}/s`);
  tile("connections-count", now.connections, whole.format(now.connections));
  tile("held-bytes", now.held_bytes, bytes(now.held_bytes));
  byId("bytes-to-broker").textContent = `${bytes(now.to_broker.bytes)}/s`;
  byId("bytes-to-client").textContent = `${bytes(now.to_client.bytes)}/s`;
}

function draw(what, show) {
  const svg = byId(`chart-${what}`);
  const most = Math.max(1, ...history.flatMap((it) => [it.to_broker[what], it.to_client[what]]));
  const last = history.length ? history[history.length - 1].at : 0;
  const paths = [line("grid", "M0 80H600M0 4H600")];
  for (const [direction, name] of [["to_broker", "in"], ["to_client", "out"]]) {
    const points = history.map((it) => {
      const x = 600 - ((last - it.at) / HISTORY) * 600;
      return `${x.toFixed(1)} ${(158 - (it[direction][what] / most) * 154).toFixed(1)}`;
    });
    if (points.length) paths.push(line(name, `M${points.join("L")}`));
  }
  svg.replaceChildren(...paths);
  byId(`scale-${what}`).textContent = `five minutes, up to ${show(most)}/s`;
  const now = history[history.length - 1];
  if (now) {
    svg.setAttribute("aria-label", `${what} per second over the last minutes: now ` +
      `${show(now.to_broker[what])} to brokers, ${show(now.to_client[what])} to clients, ` +
      `at most ${show(most)}`);
  }
}

function line(name, d) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
  made.setAttribute("class", name);
  made.setAttribute("d", d);
  return made;
}

function busy(rows, what, show) {
  const size = (it) => it.to_broker.bytes + it.to_client.bytes;
  const most = Math.max(...rows.map(size), 1);
  return [
    named(what === "tenant" ? "Tenant" : "Topic", (it) => it[what]),
    { title: "Share", show: (it) => bar(size(it), most) },
    number("In /s", (it) => count(it.to_broker.messages)),
    number("Out /s", (it) => count(it.to_client.messages)),
    number("Bytes in /s", (it) => bytes(it.to_broker.bytes)),
    number("Bytes out /s", (it) => bytes(it.to_client.bytes)),
    number("Held", (it) => (it.held_bytes ? bytes(it.held_bytes) : "")),
    ...show,
  ];
}

function showSecond(second) {
  history.push(second.now);
  while (history.length > HISTORY) history.shift();
  showNow(second.now);
  draw("messages", count);
  draw("bytes", bytes);
  const clients = [
    number("Producers", (it) => count(it.producers)),
    number("Consumers", (it) => count(it.consumers)),
  ];
  fill(byId("tenants"), "Tenants, busiest first", busy(second.tenants, "tenant", clients),
    second.tenants, { empty: "No tenant has traffic or clients.", mark: (it) => ({ tenant: it.tenant }) });
  fill(byId("talkers"), "Topics with most bytes in this second", busy(second.topics, "topic", []),
    second.topics.slice(0, 20), { empty: "No topic has traffic or clients.", mark: (it) => ({ topic: it.topic }) });
  showLimits(second);
  showLatency(second.latency);
  showGateway(second);
}

function showLimits(second) {
  fill(byId("held"), "Who waits for the allowance of a rule", [
    named("Topic", (it) => it.topic),
    { title: "Rule", show: (it) => it.rule },
    { title: "Direction", show: (it) => (it.direction === "to_broker" ? "sends" : "gets") },
    number("Waits", (it) => bytes(it.bytes)),
    number("Seconds of the last one", (it) => it.wait_seconds.toFixed(2)),
  ], second.held, { empty: "Nobody is held.", mark: (it) => ({ topic: it.topic, rule: it.rule }) });
  const ended = new Map(second.expired.map((it) => [it.rule, it.since]));
  const used = new Set(second.rules.map((it) => it.rule));
  const unused = second.expired.filter((it) => !used.has(it.rule));
  fill(byId("rules"), "Rules and what they did since the start", [
    { title: "Rule", show: (it) => it.rule },
    { title: "Limits", show: (it) => it.what ?? "" },
    { title: "Mode", show: (it) => (ended.has(it.rule) ? `expired ${ended.get(it.rule)}` : it.mode) },
    number("Fullest limit", (it) => `${Math.round((it.fill ?? 0) * 100)} %`),
    { title: "Whose", show: (it) => it.fullest ?? "" },
    number("Waiting now", (it) => count(it.waiting ?? 0)),
    number("Waits", (it) => count(it.waits ?? 0)),
    number("Waited", (it) => duration(it.seconds ?? 0)),
    number("Would hold", (it) => (it.mode === "shadow" ? count(it.held) : "")),
    number("Refused", (it) => count(it.refused ?? 0)),
  ], [...second.rules, ...unused], { empty: "There are no limits in use.", mark: (it) => ({ rule: it.rule }) });
  fill(byId("denials"), "Rights that clients lacked, since the start", [
    { title: "Right", show: (it) => it.right },
    { title: "Listener", show: (it) => it.listener },
    { title: "Rule", show: (it) => it.rule || "none allowed it" },
    { title: "Mode", show: (it) => it.mode },
    number("Times", (it) => count(it.number)),
  ], second.denials, { empty: "Nobody was denied anything." });
}

const WAITS_FOR = {
  connect: "connecting", send: "send to receipt", own: "of that: the gateway's own",
  lookup: "lookup", first_message: "first message",
};

function showLatency(latency) {
  fill(byId("latency"), "How long clients waited, of the last minute", [
    { title: "Client waits for", show: (it) => WAITS_FOR[it.what] ?? it.what },
    number("Half within", (it) => duration(it.p50)),
    number("90 %", (it) => duration(it.p90)),
    number("99 %", (it) => duration(it.p99)),
    number("Counted", (it) => count(it.count)),
  ], latency);
}

function list(id, facts) {
  byId(id).replaceChildren(...facts.flatMap(([name, value]) => [
    element("dt", name), element("dd", value ?? "–")]));
}

function showGateway(second) {
  const { process, drain, ready } = second;
  const healthy = (it) => element("span", it.healthy ? "healthy" : "avoided", it.healthy ? "good" : "bad");
  fill(byId("brokers"), "Brokers and their health", [
    named("Broker", (it) => it.broker),
    { title: "Cluster", show: (it) => it.cluster },
    { title: "State", show: healthy },
  ], second.brokers, { empty: "No broker is known yet.", mark: (it) => ({ broker: it.broker }) });
  byId("version").textContent = process.version;
  byId("uptime").textContent = `up for ${duration(second.at - process.started_at)}`;
  const opening = second.listeners.reduce((sum, it) => sum + it.opening, 0);
  byId("opening-count").textContent = opening ? `${opening} opening` : "";
  const descriptors = process.descriptor_limit === null ? count(process.descriptors)
    : `${count(process.descriptors)} of ${count(process.descriptor_limit)}`;
  list("process", [
    ...(process.processes > 1 ? [["Processes that answer", count(process.processes)]] : []),
    ["Event loop late by (99 %)", duration(process.loop_delay_p99)],
    ["Buffers", bytes(process.buffered_bytes)],
    ["Descriptors", descriptors],
    ...second.listeners.map((it) => [`Listener ${it.listener}`,
      `${count(it.open)} open, ${count(it.accepted)} accepted`]),
  ]);
  showBanners(drain, ready);
}

function showBanners(drain, ready) {
  byId("drain-banner").hidden = drain === null;
  if (drain) {
    say("drain-text", `${drain.connections} of ${drain.began} connections have yet to move.`);
    byId("drain-progress").value = drain.began ? 1 - drain.connections / drain.began : 1;
  }
  const reasons = ready.filter((it) => it !== "draining");
  byId("unready-banner").hidden = !reasons.length;
  say("unready-text", reasons.join("; "));
}

// Sets a text only if it is another one, so that screen readers are told of changes alone.
function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

// -- the feed ---------------------------------------------------------------------------------

function setState(state) {
  if (byId("state").dataset.state === state) return;
  byId("state").dataset.state = state;
  byId("state").textContent = { live: "live", lost: "reconnecting", connecting: "connecting" }[state];
}

async function follow() {
  const answer = await request("/feed");
  if (!answer.ok) throw new Error(`feed: ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) handle(event);
  }
}

function handle(event) {
  const [first, second] = event.split("\n");
  const data = JSON.parse(second.slice("data: ".length));
  if (first === "event: history") history.splice(0, history.length, ...data.seconds);
  else showSecond(data);
  setState("live");
}

async function followForEver() {
  let pause = 500;
  for (;;) {
    const began = Date.now();
    try { await follow(); } catch { /* told by the state */ }
    setState("lost");
    // A gateway that restarts is back in a second; one that is gone is asked less and less often.
    pause = Date.now() - began > 5000 ? 500 : Math.min(pause * 2, 15000);
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

// -- tables that are asked for ----------------------------------------------------------------

class Listing {
  constructor(name, caption, columns, by, mark) {
    Object.assign(this, { name, caption, columns, by, mark, descending: true, offset: 0, asked: 0 });
    const search = byId(`search-${name}`);
    search.addEventListener("input", () => { this.offset = 0; this.soon(); });
    byId(`${name}-before`).addEventListener("click", () => this.page(-ROWS));
    byId(`${name}-next`).addEventListener("click", () => this.page(ROWS));
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 200);
  }

  page(by) {
    this.offset = Math.max(0, this.offset + by);
    this.load();
  }

  choose(by) {
    this.descending = this.by === by ? !this.descending : true;
    this.by = by;
    this.offset = 0;
    this.load({ refocus: by });
  }

  async load({ refocus } = {}) {
    const asked = ++this.asked;
    const query = new URLSearchParams({
      search: byId(`search-${this.name}`).value, sort: this.by,
      descending: this.descending, limit: ROWS, offset: this.offset,
    });
    const found = await read(`/${this.name}?${query}`);
    if (asked !== this.asked) return; // another question was asked meanwhile
    const table = byId(this.name);
    const focused = refocus ?? table.querySelector(":focus")?.dataset.sort;
    const opened = table.querySelector(":focus")?.dataset.open;
    fill(table, this.caption, this.columns, found.rows, {
      empty: "Nothing is found.", mark: this.mark,
      sort: { by: this.by, descending: this.descending, choose: (by) => this.choose(by) },
    });
    if (focused) table.querySelector(`[data-sort="${focused}"]`)?.focus();
    if (opened) table.querySelector(`[data-open="${CSS.escape(opened)}"]`)?.focus();
    const last = this.offset + found.rows.length;
    say(`${this.name}-found`, found.matching ? `${this.offset + 1} to ${last} of ${whole.format(found.matching)}` : "");
    byId(`${this.name}-before`).disabled = this.offset === 0;
    byId(`${this.name}-next`).disabled = last >= found.matching;
  }
}

function opener(row) {
  const button = element("button", row.client);
  button.type = "button";
  button.dataset.open = row.id;
  button.setAttribute("aria-label", `Connection ${row.id} of ${row.client}`);
  button.addEventListener("click", () => showConnection(row.id));
  return button;
}

const connections = new Listing("connections", "Open connections", [
  number("Id", (it) => it.id, "id"),
  { title: "Client", show: opener, sort: "client" },
  named("Principal", (it) => it.principal, "principal"),
  named("Library", (it) => it.library, "library"),
  { title: "Listener", show: (it) => it.listener, sort: "listener" },
  { title: "TLS", show: (it) => it.tls ?? "no", sort: "tls" },
  named("Broker", (it) => it.broker, "broker"),
  number("Open for", (it) => duration(it.seconds), "seconds"),
  number("Producers", (it) => it.producers, "producers"),
  number("Consumers", (it) => it.consumers, "consumers"),
  number("Held", (it) => bytes(it.held_bytes), "held_bytes"),
], "seconds", (it) => ({ id: it.id }));

const topics = new Listing("topics", "Topics, with totals since the start", [
  named("Topic", (it) => it.topic, "topic"),
  { title: "Tenant", show: (it) => it.tenant, sort: "tenant" },
  { title: "Cluster", show: (it) => it.cluster, sort: "cluster" },
  number("Messages in", (it) => count(it.messages_in), "messages_in"),
  number("Bytes in", (it) => bytes(it.bytes_in), "bytes_in"),
  number("Messages out", (it) => count(it.messages_out), "messages_out"),
  number("Bytes out", (it) => bytes(it.bytes_out), "bytes_out"),
  number("Producers", (it) => it.producers, "producers"),
  number("Consumers", (it) => it.consumers, "consumers"),
  number("Waited", (it) => duration(it.wait_seconds), "wait_seconds"),
  number("Held", (it) => bytes(it.held_bytes), "held_bytes"),
], "bytes_in", (it) => ({ topic: it.topic }));

async function showConnection(id) {
  let found;
  try {
    found = await read(`/connections/${id}`);
  } catch (error) {
    say("connections-found", error.message);
    return;
  }
  byId("details-title").textContent = `Connection ${id}`;
  list("details-list", [
    ["Client", found.client], ["Principal", found.principal], ["Method", found.method],
    ["Library", found.library], ["Broker", found.broker], ["TLS", found.tls ?? "no"],
    ["Open for", duration(found.seconds)],
  ]);
  fill(byId("accounts"), "Producers and consumers of this connection", [
    { title: "Does", show: (it) => it.action },
    named("Topic", (it) => it.topic),
    { title: "Subscription", show: (it) => it.subscription },
    number("Messages", (it) => count(it.messages)),
    number("Bytes", (it) => bytes(it.bytes)),
    number("Held", (it) => bytes(it.held_bytes)),
  ], found.accounts, { empty: "It has none." });
  byId("close-connection").onclick = async () => {
    const sure = await confirm(`Close connection ${id}?`,
      "Its client connects again, and repeats what has no receipt.", "Close it");
    if (!sure) return;
    byId("details").close();
    await tell(act(`/connections/${id}/close`), `Connection ${id} was closed.`);
    connections.load();
  };
  byId("details").showModal();
}

// -- doing ------------------------------------------------------------------------------------

function confirm(title, text, yes) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

async function tell(doing, done) {
  try {
    await doing;
    say("told", done);
  } catch (error) {
    say("told", `It was not done: ${error.message}`);
  }
}

byId("drain").addEventListener("click", async () => {
  const text = "Clients move to other gateways, and this one ends. It cannot be taken back.";
  if (await confirm("Drain this gateway?", text, "Drain and stop")) {
    await tell(act("/drain"), "The gateway drains.");
  }
});
byId("reload").addEventListener("click", async () => {
  if (await confirm("Reload the rules?", "Files with mistakes change nothing.", "Reload")) {
    await tell(act("/reload"), "The rules are read again; the log tells what changed.");
  }
});
byId("configuration-part").addEventListener("toggle", async () => {
  if (byId("configuration-part").open) {
    byId("configuration").textContent = (await read("/configuration")).text;
  }
});
byId("load-slowest").addEventListener("click", async () => {
  const { sends } = await read("/slowest");
  fill(byId("slowest"), "Slowest sends of the last five minutes", [
    number("Took", (it) => duration(it.seconds)),
    { title: "At", show: (it) => new Date(it.at * 1000).toLocaleTimeString() },
    named("Topic", (it) => it.topic),
    named("Principal", (it) => it.principal),
    number("Connection", (it) => it.connection),
  ], sends, { empty: "No send was timed in the last five minutes." });
});

// -- theme ------------------------------------------------------------------------------------

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(dark));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = localStorage.getItem("theme");
setTheme(chosen === null ? dark.matches : chosen === "dark");
dark.addEventListener("change", () => {
  if (localStorage.getItem("theme") === null) setTheme(dark.matches);
});
byId("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme !== "dark";
  localStorage.setItem("theme", now ? "dark" : "light");
  setTheme(now);
});

// Tables that are asked for are read again every few seconds, while the page is seen.
async function refresh() {
  for (;;) {
    if (!document.hidden && !document.querySelector("dialog[open]")) {
      try { await Promise.all([connections.load(), topics.load()]); } catch { /* told by the state */ }
    }
    await new Promise((resume) => setTimeout(resume, 5000));
  }
}

followForEver();
refresh();
