// Sessions: who does what now, who waits for whom, and KILL of one statement.

import { badge, card, h, put } from "./dom.js";
import { bytes, ms, number, text } from "./format.js";
import { get, post, rowsOf } from "./server.js";
import { Table, cutOf, errorOf } from "./table.js";

const PAIRS = {
  EXCLUSIVE: null,
  SHARED_NO_WRITE: ["SHARED_WRITE", "SHARED_NO_WRITE", "SHARED_UPGRADABLE"],
  SHARED_UPGRADABLE: ["SHARED_UPGRADABLE", "SHARED_NO_WRITE"],
};
/// Whether one lock of a name excludes another one.
const excludes = (a, b) => [[a, b], [b, a]].some(([one, other]) => one in PAIRS && (PAIRS[one] === null || PAIRS[one].includes(other)));

/// Returns who waits for whom: [{ waiting, blocking, what }].
export function waitsOf(found) {
  const waits = rowsOf(found.row_waits).map(row => ({ waiting: row.waiting, blocking: row.blocking, seconds: row.seconds,
    what: row.lock_table + "." + row.lock_index + " " + row.lock_mode + (row.lock_data ? " (" + row.lock_data + ")" : "") }));
  const names = rowsOf(found.metadata_locks), place = row => [row.OBJECT_TYPE, row.OBJECT_SCHEMA, row.OBJECT_NAME].join("\0");
  for (const row of names.filter(row => row.LOCK_STATUS === "PENDING")) {
    const others = names.filter(other => place(other) === place(row) && other.thread !== row.thread && excludes(row.LOCK_TYPE, other.LOCK_TYPE));
    // Without a lock that excludes it, it waits for a stronger one that was requested before.
    const granted = others.filter(other => other.LOCK_STATUS === "GRANTED");
    for (const other of granted.length ? granted : others) {
      const what = row.OBJECT_TYPE.toLowerCase() + " " + [row.OBJECT_SCHEMA, row.OBJECT_NAME].filter(Boolean).join(".") + ", " + row.LOCK_TYPE;
      if (!waits.some(wait => wait.waiting === row.thread && wait.blocking === other.thread)) waits.push({ waiting: row.thread, blocking: other.thread, what });
    }
  }
  return waits;
}

/// Draws the waits as a tree: those that block others without waiting are its roots.
export function treeOf(waits, describe) {
  const roots = [...new Set(waits.map(wait => wait.blocking))].filter(id => !waits.some(wait => wait.waiting === id));
  const drawn = new Set();
  // Each session stands once, below the first that blocks it.
  const node = (id, what) => {
    const below = waits.filter(wait => wait.blocking === id && !drawn.has(wait.waiting));
    below.forEach(wait => drawn.add(wait.waiting));
    return h("li", null, h("b", null, "#" + id), " ", describe(id), what ? h("div", { class: "weak small" }, "waits for " + what) : null,
      below.length ? h("ul", null, below.map(wait => node(wait.waiting, wait.what))) : null);
  };
  return waits.length ? h("ul", { class: "tree" }, (roots.length ? roots : [waits[0].blocking]).map(id => node(id))) : h("p", { class: "weak" }, "No session waits for another one.");
}

export const sessions = {
  id: "sessions", title: "Sessions", needsLogin: true,
  create(root) {
    let isAll = false, last = null;
    const note = h("div"), tree = h("div"), said = h("p", { class: "notice", role: "status", hidden: true });
    const say = message => { put(said, message); said.hidden = false; };
    async function kill(row) {
      if (!confirm("KILL the statement of session " + row.ID + "?\n\n" + text(row.INFO).slice(0, 300))) return;
      try {
        await post("/api/kill", { query_id: row.QUERY_ID });
        say("The statement of session " + row.ID + " was killed.");
      } catch (error) {
        say("Session " + row.ID + " was not killed: " + error.message);
      }
      await refresh();
    }
    const table = new Table([
      { name: "Id", isNumber: true, of: row => row.ID },
      { name: "Account", of: row => row.USER, show: (value, row) => [h("div", null, text(value)), h("div", { class: "weak small" }, text(row.HOST))] },
      { name: "Database", of: row => row.DB },
      { name: "Time", isNumber: true, of: row => row.TIME_MS, show: ms },
      { name: "State", of: row => row.STATE || row.COMMAND, class: "state-cell", show: (value, row) => [badge(text(row.COMMAND), row.COMMAND === "Sleep" ? "plain" : "good"), row.isWaiting ? badge("waits", "bad") : null, h("div", { class: "weak small" }, text(row.STATE))] },
      { name: "Statement", of: row => row.INFO, class: "code wide", show: value => h("span", { class: "clip", title: value || "" }, text(value)) },
      { name: "Examined", isNumber: true, of: row => row.EXAMINED_ROWS, show: number },
      { name: "Memory", isNumber: true, of: row => row.MEMORY_USED, show: bytes },
      { name: "Transaction", isNumber: true, of: row => row.transaction ? row.transaction.trx_rows_modified : null, show: (value, row) => row.transaction ? number(value) + (value === 1 ? " row, " : " rows, ") + row.transaction.seconds + " s" : "–" },
      { name: "", of: () => "", show: (_, row) => row.INFO && row.QUERY_ID ? h("button", { type: "button", class: "danger", onclick: () => kill(row), "aria-label": "KILL the statement of session " + row.ID }, "Kill") : "" },
    ], { caption: "Sessions", empty: "No session runs a statement." });
    const all = h("input", { type: "checkbox", onchange: () => { isAll = all.checked; draw(); } });
    put(root, said, note, card("Who waits for whom", tree), card("Sessions", h("label", { class: "check" }, all, " Idle sessions, too"), table.element));

    function draw() {
      const waits = waitsOf(last), transactions = new Map(rowsOf(last.transactions).map(row => [row.thread, row]));
      const rows = rowsOf(last.sessions).map(row => ({ ...row, transaction: transactions.get(row.ID), isWaiting: waits.some(wait => wait.waiting === row.ID) }));
      const byId = new Map(rows.map(row => [row.ID, row]));
      const isShown = row => isAll || !["Sleep", "Daemon"].includes(row.COMMAND) || row.transaction || waits.some(wait => wait.blocking === row.ID);
      table.update(rows.filter(isShown));
      put(note, errorOf(last.sessions), cutOf(last.sessions), errorOf(last.transactions));
      put(tree, treeOf(waits, id => h("code", { class: "clip" }, byId.has(id) ? text(byId.get(id).INFO || byId.get(id).COMMAND) : "")));
    }
    async function refresh() { last = await get("/api/sessions"); draw(); }
    return { refresh, every: () => 2000 };
  },
};
