// Locks: waits of now, and the last deadlock as a circle of transactions.

import { card, h, put, s } from "./dom.js";
import { text } from "./format.js";
import { get, rowsOf } from "./server.js";
import { Table, errorOf } from "./table.js";
import { treeOf, waitsOf } from "./sessions.js";

/// Returns the part of SHOW ENGINE INNODB STATUS below a heading.
function part(status, heading) {
  const lines = status.split("\n"), at = lines.findIndex((line, n) => line === heading && /^-+$/.test(lines[n + 1] || ""));
  if (at < 0) return null;
  const after = lines.slice(at + 2), end = after.findIndex((line, n) => /^-+$/.test(after[n + 1] || "") && line.trim() !== "" && line === line.toUpperCase());
  return after.slice(0, end < 0 ? after.length : end).join("\n").trim();
}

/// Reads the transactions of a deadlock: "(1) transaction 7, thread 5, rolled back", its statement, and what it
/// waits for. A statement of several lines may contain anything; the text stands below the drawing.
export function membersOf(deadlock) {
  const members = [];
  for (const line of deadlock.split("\n")) {
    const head = line.match(/^\((\d+)\) transaction (\d+), thread (\d+)(, rolled back)?$/);
    if (head && Number(head[1]) === members.length + 1) members.push({ name: "Session " + head[3] + ", transaction " + head[2], statement: "", waits: "", isVictim: Boolean(head[4]) });
    else if (!members.length) continue;
    else if (line.startsWith("waits ")) members.at(-1).waits = line;
    else members.at(-1).statement += (members.at(-1).statement ? " " : "") + line;
  }
  return members;
}

function drawing(members) {
  const width = 640, height = 96 * members.length - 8;
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "deadlock", role: "img", "aria-label": "The last deadlock: each transaction waits for the next one" });
  const tip = (x, y, dx, dy) => s("path", { class: "tip", d: `M${x} ${y}L${x - 8 * dx + 5 * dy} ${y - 8 * dy + 5 * dx}L${x - 8 * dx - 5 * dy} ${y - 8 * dy - 5 * dx}Z` });
  members.forEach((member, n) => {
    const y = 12 + 96 * n;
    svg.append(s("rect", { class: member.isVictim ? "victim" : "", x: 60, y, width: width - 80, height: 64, rx: 8 }),
      s("text", { class: "name", x: 76, y: y + 22 }, member.name + (member.isVictim ? " – rolled back" : "")));
    [member.statement, member.waits].forEach((line, place) => svg.append(s("text", { x: 76, y: y + 40 + 16 * place }, line.length > 78 ? line.slice(0, 77) + "…" : line)));
    if (n + 1 < members.length) svg.append(s("path", { class: "edge", d: `M${width / 2} ${y + 64}V${y + 88}` }), tip(width / 2, y + 95, 0, 1));
  });
  if (members.length > 1) svg.append(s("path", { class: "edge", d: `M60 ${12 + 96 * (members.length - 1) + 32}H24V44H52` }), tip(59, 44, 1, 0));
  return svg;
}

export const locks = {
  id: "locks", title: "Locks and deadlocks", needsLogin: true,
  create(root) {
    const note = h("div"), tree = h("div"), last = h("div");
    const table = new Table([
      { name: "Waits", isNumber: true, of: row => row.waiting, show: value => "#" + value },
      { name: "Blocked by", isNumber: true, of: row => row.blocking, show: value => "#" + value },
      { name: "Table", of: row => row.lock_table }, { name: "Index", of: row => row.lock_index }, { name: "Mode", of: row => row.lock_mode },
      { name: "Key", of: row => row.lock_data, class: "code" }, { name: "Since", isNumber: true, of: row => row.seconds, show: value => text(value) + " s" },
      { name: "Statement", of: row => row.waiting_query, class: "code wide", show: value => h("span", { class: "clip" }, text(value)) },
    ], { caption: "Row locks waited for", empty: "No session waits for a row." });
    const names = new Table([
      { name: "Session", isNumber: true, of: row => row.thread, show: value => "#" + value },
      { name: "Object", of: row => [row.OBJECT_SCHEMA, row.OBJECT_NAME].filter(Boolean).join("."), show: (value, row) => row.OBJECT_TYPE.toLowerCase() + " " + value },
      { name: "Lock", of: row => row.LOCK_TYPE }, { name: "Status", of: row => row.LOCK_STATUS },
    ], { caption: "Metadata locks waited for", empty: "No session waits for a metadata lock." });
    put(root, note, card("Who waits for whom", tree), card("Row locks", table.element), card("Metadata locks", names.element), card("Last deadlock", last));
    return {
      every: () => 3000,
      async refresh() {
        const found = await get("/api/locks");
        put(note, errorOf(found.row_waits), errorOf(found.metadata_locks));
        const rows = rowsOf(found.row_waits), queries = new Map();
        rows.forEach(row => { queries.set(row.waiting, row.waiting_query); queries.set(row.blocking, row.blocking_query); });
        table.update(rows);
        names.update(rowsOf(found.metadata_locks));
        put(tree, treeOf(waitsOf(found), id => h("code", { class: "clip" }, text(queries.get(id) ?? ""))));
        const status = rowsOf(found.engine_status)[0], deadlock = status ? part(String(status.Status), "LATEST DETECTED DEADLOCK") : null;
        if (errorOf(found.engine_status)) put(last, errorOf(found.engine_status));
        else if (!deadlock) put(last, h("p", { class: "weak" }, "None since the start."));
        else {
          const members = membersOf(deadlock);
          put(last, members.length ? drawing(members) : null, h("details", { open: !members.length }, h("summary", null, "Text"), h("pre", null, deadlock)));
        }
      },
    };
  },
};
