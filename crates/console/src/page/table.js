// Tables that can be sorted by their headings, with the mouse or the keyboard.

import { h, put } from "./dom.js";
import { text } from "./format.js";

/// Makes a table. `columns`: [{ name, of: row => value, show: (value, row) => text or element, isNumber, class }].
/// `onopen`: called with the row whose first cell was activated. `isOpen`: returns the element below a row.
export class Table {
  constructor(columns, { caption, empty, onopen, sort, key } = {}) {
    Object.assign(this, { columns, empty: empty || "Nothing here", onopen, key });
    this.sort = sort === undefined ? null : { column: sort, down: true };
    this.body = h("tbody");
    this.head = h("tr");
    this.element = h("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
      h("table", null, h("caption", { class: "hidden" }, caption), h("thead", null, this.head), this.body));
    this.rows = [];
    this.drawHead();
  }

  drawHead() {
    put(this.head, this.columns.map((column, n) => {
      const isSorted = this.sort && this.sort.column === n;
      const order = isSorted ? (this.sort.down ? "descending" : "ascending") : "none";
      const button = h("button", { type: "button", class: "heading", onclick: () => this.sortBy(n) }, column.name, h("span", { "aria-hidden": "true" }, isSorted ? (this.sort.down ? " ↓" : " ↑") : ""));
      return h("th", { scope: "col", class: (column.isNumber ? "n " : "") + (column.class || ""), "aria-sort": order }, button);
    }));
  }

  sortBy(n) {
    const down = this.sort && this.sort.column === n ? !this.sort.down : Boolean(this.columns[n].isNumber);
    this.sort = { column: n, down };
    this.drawHead();
    this.update(this.rows);
  }

  update(rows) {
    this.rows = rows;
    let shown = rows;
    if (this.sort) {
      const { of, isNumber } = this.columns[this.sort.column], sign = this.sort.down ? -1 : 1;
      const value = row => isNumber ? Number(of(row) ?? -Infinity) : text(of(row));
      shown = [...rows].sort((a, b) => { const x = value(a), y = value(b); return x < y ? -sign : x > y ? sign : 0; });
    }
    const cell = (column, row, n) => {
      const value = column.of(row);
      const content = column.show ? column.show(value, row) : text(value);
      const name = (column.isNumber ? "n " : "") + (column.class || "");
      if (n === 0 && this.onopen) return h("td", { class: name, "data-name": column.name }, h("button", { type: "button", class: "link", onclick: () => this.onopen(row) }, content));
      return h("td", { class: name, "data-name": column.name }, content);
    };
    put(this.body, shown.length
      ? shown.map(row => h("tr", null, this.columns.map((column, n) => cell(column, row, n))))
      : h("tr", null, h("td", { colspan: this.columns.length, class: "weak" }, this.empty)));
  }
}

/// Shows the error of a result, which may be a lack of privileges.
export const errorOf = result => result && result.error
  ? h("p", { class: "notice" }, result.error + (result.number ? " (" + result.number + ")" : "")) : null;

export const cutOf = result => result && result.cut ? h("p", { class: "weak" }, "The list is cut.") : null;
