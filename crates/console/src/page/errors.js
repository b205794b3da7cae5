// The newest lines of the error log.

import { badge, card, h, put } from "./dom.js";
import { text } from "./format.js";
import { get, rowsOf } from "./server.js";
import { Table, errorOf } from "./table.js";

const STATES = { Error: "bad", Warning: "warn" };

export const errors = {
  id: "errors", title: "Errors", needsLogin: true,
  create(root) {
    let rows = [];
    const level = h("select", { "aria-label": "Level", onchange: () => draw() }, ["All", "Warning", "Error"].map(name => h("option", { value: name }, name === "All" ? "All lines" : name === "Warning" ? "Warnings and errors" : "Errors")));
    const table = new Table([
      { name: "Time, UTC", of: row => row.LOGGED, class: "code nowrap", show: value => text(value).slice(0, 19) },
      { name: "Level", of: row => row.PRIO, show: value => badge(text(value), STATES[value] || "plain") },
      { name: "Text", of: row => row.DATA, class: "wide", show: value => h("span", { class: "log" }, text(value)) },
    ], { caption: "Error log", empty: "No such line." });
    const draw = () => table.update(rows.filter(row => level.value === "All" || row.PRIO === "Error" || row.PRIO === level.value));
    const note = h("div");
    put(root, note, card("Error log, newest lines first", level, table.element));
    return {
      every: () => 5000,
      async refresh() {
        const found = await get("/api/errors");
        put(note, errorOf(found.errors));
        rows = rowsOf(found.errors);
        draw();
      },
    };
  },
};
