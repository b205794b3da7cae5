// Charts of the history: lines over time in SVG, with the values under the pointer, and the same as a table.

import { h, s, put } from "./dom.js";
import { bytes, clock } from "./format.js";

const HEIGHT = 150, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 20;

/// Rounds up to 1, 2, 2.5 or 5 times a power of ten; sizes to a power of two.
function roundUp(value, format) {
  if (!(value > 0)) return 1;
  if (format === bytes) return 2 ** Math.ceil(Math.log2(value * 0.999999));
  const magnitude = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map(step => step * magnitude).find(top => top >= value * 0.999999);
}

/// A chart. `lines`: [{ label, of: series => values, format }]. `stacked`: the lines add up.
export class Chart {
  constructor({ title, lines, format, stacked, note }) {
    Object.assign(this, { title, lines, format, stacked });
    this.legend = h("ul", { class: "legend" });
    this.plot = h("div", { class: "plot" });
    this.rows = h("div", { class: "chart-table", hidden: true });
    this.toggle = h("button", { class: "quiet", type: "button", "aria-pressed": "false", onclick: () => this.flip() }, "Table");
    this.element = h("section", { class: "card chart" },
      h("div", { class: "card-head" }, h("h2", { title: note }, title), this.toggle), this.legend, this.plot, this.rows);
    this.data = null;
    this.width = 0;
    new ResizeObserver(entries => {
      const width = Math.floor(entries[0].contentRect.width);
      if (width !== this.width) { this.width = width; this.draw(); }
    }).observe(this.plot);
  }

  flip() {
    const isTable = this.rows.hidden;
    this.rows.hidden = !isTable;
    this.plot.hidden = isTable;
    this.toggle.setAttribute("aria-pressed", String(isTable));
    put(this.toggle, isTable ? "Chart" : "Table");
    this.draw();
  }

  update(data, span) {
    this.data = data;
    this.span = span;
    this.values = this.lines.map(line => line.of(data.series, data) || []);
    this.draw();
  }

  draw() {
    if (!this.data) return;
    const last = this.data.begin.length - 1;
    this.show(last);
    if (!this.rows.hidden) return this.drawTable();
    if (this.width < 80) return;
    const { begin, end, seconds } = this.data, width = this.width;
    const until = end.length ? end[last] : Date.now(), from = until - this.span * 1000;
    const sums = this.stacked ? this.stack() : this.values;
    const first = Math.max(0, begin.findIndex(at => at >= from));
    let most = 0;
    for (const values of sums) for (let n = first; n < values.length; n++) if (values[n] > most) most = values[n];
    const top = roundUp(most, this.format);
    const x = at => LEFT + (at - from) / (until - from) * (width - LEFT - RIGHT);
    const y = value => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
    const svg = s("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": this.title });
    for (const part of [0, 0.5, 1]) {
      svg.append(s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(top * part), y2: y(top * part) }),
        s("text", { x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end" }, this.format(top * part)));
    }
    const marks = width > 420 ? 4 : 2;
    for (let n = 0; n <= marks; n++) {
      const at = from + (until - from) * n / marks;
      svg.append(s("text", { x: x(at), y: HEIGHT - 5, "text-anchor": n === 0 ? "start" : n === marks ? "end" : "middle" }, clock(at, this.span <= 900)));
    }
    sums.forEach((values, line) => {
      const parts = [];
      let part = null;
      for (let n = first; n < values.length; n++) {
        const isGap = n > first && begin[n] - end[n - 1] > 1500 * seconds;
        if (values[n] === null || values[n] === undefined) { part = null; continue; }
        if (!part || isGap) parts.push(part = []);
        part.push([x(end[n]), y(values[n])]);
      }
      for (const points of parts) {
        const path = points.map(([px, py]) => px.toFixed(1) + " " + py.toFixed(1)).join("L");
        const base = y(0).toFixed(1);
        if (this.lines.length === 1 || this.stacked)
          svg.append(s("path", { class: (this.stacked ? "area solid l" : "area l") + line, d: `M${points[0][0].toFixed(1)} ${base}L${path}L${points.at(-1)[0].toFixed(1)} ${base}Z` }));
        if (!this.stacked) svg.append(points.length === 1
          ? s("circle", { class: "dot l" + line, cx: points[0][0].toFixed(1), cy: points[0][1].toFixed(1), r: 2 })
          : s("path", { class: "line l" + line, d: "M" + path }));
      }
    });
    if (this.stacked) svg.querySelectorAll("path").forEach(path => svg.insertBefore(path, svg.firstChild));
    const cursor = s("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    svg.append(cursor);
    svg.addEventListener("pointermove", event => {
      const at = from + (event.clientX - svg.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT) * (until - from);
      let n = end.findIndex(moment => moment >= at);
      if (n < 0) n = last;
      if (n < first) return;
      cursor.setAttribute("visibility", "visible");
      cursor.setAttribute("x1", x(end[n]));
      cursor.setAttribute("x2", x(end[n]));
      this.show(n, true);
    });
    svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); this.show(last); });
    if (last < 0) svg.append(s("text", { x: width / 2, y: HEIGHT / 2 - 10, "text-anchor": "middle" }, "No figures yet"));
    put(this.plot, svg);
  }

  /// Running sums of the lines, the last one on top.
  stack() {
    const sums = [];
    this.values.forEach((values, line) => sums.push(values.map((value, n) => (value || 0) + (line ? sums[line - 1][n] : 0))));
    return sums;
  }

  /// Shows the values of one slot in the legend.
  show(n, isPointed) {
    const entry = (line, at) => h("li", null, h("i", { class: "mark l" + at }), line.label + " ",
      h("b", null, n < 0 ? "–" : (line.format || this.format)(this.values[at][n])));
    const moment = isPointed ? h("li", { class: "weak" }, clock(this.data.end[n], true)) : null;
    put(this.legend, this.lines.map(entry), moment);
  }

  drawTable() {
    const rows = [], { end } = this.data;
    for (let n = end.length - 1; n >= 0 && rows.length < 60; n--) {
      rows.push(h("tr", null, h("th", { scope: "row" }, clock(end[n], true)), this.lines.map((line, at) => h("td", { class: "n" }, (line.format || this.format)(this.values[at][n])))));
    }
    put(this.rows, h("table", null, h("caption", { class: "hidden" }, this.title),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Time"), this.lines.map(line => h("th", { scope: "col", class: "n" }, line.label)))),
      h("tbody", null, rows)));
  }
}
