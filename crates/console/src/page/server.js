// Requests to the server, and who has logged in.

let account = null;
const listeners = new Set();

/// Calls a function when somebody logs in or out.
export const onLogin = listener => { listeners.add(listener); };
export const me = () => account;

function become(other) {
  if (account === other) return;
  account = other;
  listeners.forEach(listener => listener());
}

/// The server has rejected a request.
export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function ask(path, options) {
  const answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  if (answer.status === 401 && path !== "/api/login") become(null);
  throw new Refused(answer.status, body.error || "status " + answer.status);
}

export const get = path => ask(path);

export const post = (path, body) => ask(path, {
  method: "POST", body: JSON.stringify(body),
  headers: { "Content-Type": "application/json", ...(account ? { "X-Cohort-Token": account.token } : {}) },
});

/// Finds out who has logged in before, without a request that must fail.
export async function resume() {
  if (!sessionStorage.getItem("cohort-login")) return;
  try { become(await get("/api/me")); } catch { sessionStorage.removeItem("cohort-login"); }
}

export async function logIn(user, password) {
  const found = await post("/api/login", { user, password });
  sessionStorage.setItem("cohort-login", "1");
  become(found);
}

export async function logOut() {
  sessionStorage.removeItem("cohort-login");
  try { await post("/api/logout", {}); } finally { become(null); }
}

/// Rows of a result as objects.
export const rowsOf = result => (result && result.rows || []).map(row => Object.fromEntries(result.columns.map((name, n) => [name, row[n]])));

/// The figures of a tier of the history, kept up to date.
export class History {
  constructor(tier, names) {
    this.tier = tier;
    this.names = names;
    this.last = 0;
    this.data = { begin: [], end: [], series: {}, seconds: 1 };
  }
  async load() {
    const found = await get("/api/history?tier=" + this.tier + "&after=" + this.last + "&series=" + this.names.join(","));
    if (found.last < this.last) { this.last = 0; return this.load(); }
    this.last = found.last;
    const keep = [900, 1080, 1440][this.tier], data = this.data;
    data.seconds = found.seconds;
    const append = (old, more) => old.concat(more).slice(-keep);
    data.begin = append(data.begin, found.begin);
    data.end = append(data.end, found.end);
    for (const [name, values] of Object.entries(found.series)) data.series[name] = append(data.series[name] || [], values);
    return data;
  }
}
