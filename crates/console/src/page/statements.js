// Statements: which take most time, and one of them over time.

import { badge, bar, card, figure, h, put } from "./dom.js";
import { clock, number, text, us } from "./format.js";
import { Chart } from "./chart.js";
import { get, rowsOf } from "./server.js";
import { Table, cutOf, errorOf } from "./table.js";

const RANGES = [["15 min", 15], ["1 h", 60], ["24 h", 1440], ["since the start", 0]];
const ORDERS = [["time", "total time"], ["p99", "p99"], ["examined", "rows examined"], ["calls", "calls"], ["errors", "errors"], ["lock", "lock waits"]];

const mean = row => row.CALLS > 0 ? row.SUM_US / row.CALLS : null;
const digestText = row => row.DIGEST_TEXT || (row.LEVEL === "OTHERS" ? "(evicted: " + row.EVENT_NAME + ")" : "(" + text(row.EVENT_NAME).replace("statement/", "") + ")");

export const statements = {
  id: "statements", title: "Statements", needsLogin: true,
  create(root) {
    let minutes = 15, order = "time", open = null, total = 1;
    const table = new Table([
      { name: "Statement", of: digestText, class: "code wide", show: (value, row) => h("span", { class: "clip", title: row.SCHEMA_NAME ? "in " + row.SCHEMA_NAME : "" }, value) },
      { name: "Time", isNumber: true, of: row => row.SUM_US, show: (value) => [us(value), bar(value / total)] },
      { name: "Calls", isNumber: true, of: row => row.CALLS, show: number },
      { name: "Mean", isNumber: true, of: mean, show: us },
      { name: "p99", isNumber: true, of: row => row.P99_US, show: us },
      { name: "Examined", isNumber: true, of: row => row.ROWS_EXAMINED, show: number },
      { name: "Sent", isNumber: true, of: row => row.ROWS_SENT, show: number },
      { name: "Errors", isNumber: true, of: row => row.ERRORS, show: value => value > 0 ? badge(number(value), "bad") : "0" },
      { name: "", of: row => row.ROWS_EXAMINED > 0 ? row.NO_INDEX_USED : 0, show: value => value > 0 ? badge("no index", "warn") : "" },
    ], { caption: "Statements", empty: "No statement in this time. The minutes of the history are complete after a minute.", onopen: row => show(row) });
    const ranges = RANGES.map(([name, value]) => h("button", { type: "button", "aria-pressed": String(value === minutes), onclick: () => { minutes = value; press(); refresh(); } }, name));
    const orders = h("select", { "aria-label": "Order", onchange: () => { order = orders.value; refresh(); } }, ORDERS.map(([value, name]) => h("option", { value }, "by " + name)));
    const press = () => { ranges.forEach((button, n) => button.setAttribute("aria-pressed", String(RANGES[n][1] === minutes))); orders.hidden = minutes !== 0; };
    const note = h("div"), detail = h("div", { class: "detail" });
    press();
    put(root, h("div", { class: "ranges", role: "group", "aria-label": "Range of time" }, ranges, orders), note, detail, card("Top statements", table.element));

    function show(row) {
      if (!row.DIGEST) return;
      open = row.DIGEST;
      drawDetail();
      detail.scrollIntoView({ block: "nearest" });
    }

    async function drawDetail() {
      const asked = open;
      if (!asked) return;
      const found = await get("/api/statement?digest=" + asked);
      if (asked !== open) return;
      const rows = rowsOf(found.statement), row = rows.find(one => one.LEVEL === "TOP") || rows[0];
      const close = h("button", { type: "button", class: "quiet", onclick: () => { open = null; put(detail); } }, "Close");
      if (!row) { put(detail, h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", null, "Statement"), close), errorOf(found.statement) || h("p", { class: "weak" }, "It was evicted from the statistics."))); return; }
      const at = found.minutes.map(minute => minute[0]);
      const data = { begin: at, end: at.map(begin => begin + 60000), seconds: 60, series: {
        calls: found.minutes.map(minute => minute[1] / 60), mean: found.minutes.map(minute => minute[1] > 0 ? minute[3] / minute[1] : null), errors: found.minutes.map(minute => minute[2] / 60) } };
      const charts = [
        new Chart({ title: "Mean time by minute", format: us, lines: [{ label: "mean", of: series => series.mean }] }),
        new Chart({ title: "Calls per second", format: number, lines: [{ label: "calls", of: series => series.calls }, { label: "errors", of: series => series.errors }] }),
      ];
      const known = new Set(["DIGEST_TEXT", "SAMPLE_TEXT", "SAMPLE_PLAN", "SCHEMA_NAME", "DIGEST", "EVENT_NAME", "LEVEL"]);
      put(detail, h("section", { class: "card" },
        h("div", { class: "card-head" }, h("h2", null, "Statement ", h("code", null, asked.slice(0, 8))), close),
        h("pre", { class: "sql" }, text(row.DIGEST_TEXT)),
        h("div", { class: "figures" },
          figure("Calls", number(row.CALLS), number(row.ERRORS) + " errors", row.ERRORS > 0 ? "warn" : ""),
          figure("p50", us(row.P50_US), "mean " + us(mean(row))), figure("p99", us(row.P99_US), "p99.9 " + us(row.P999_US)), figure("Longest", us(row.MAX_US), "shortest " + us(row.MIN_US)),
          figure("Lock waits", us(row.LOCK_WAIT_US), "of " + us(row.SUM_US)), figure("Commit wait", us(row.COMMIT_WAIT_US), "after its own end"),
          figure("Rows examined", number(row.ROWS_EXAMINED), number(row.ROWS_SENT) + " sent")),
        h("div", { class: "charts" }, charts.map(chart => chart.element)),
        row.SAMPLE_TEXT ? [h("h3", null, "Sample, " + us(row.SAMPLE_US)), h("pre", { class: "sql" }, row.SAMPLE_TEXT)] : null,
        row.SAMPLE_PLAN ? [h("h3", null, "Plan"), h("pre", { class: "sql" }, row.SAMPLE_PLAN)] : null,
        h("details", null, h("summary", null, "All columns"), h("dl", { class: "pairs" }, Object.entries(row).filter(([name]) => !known.has(name)).map(([name, value]) => [h("dt", null, name), h("dd", null, text(value))])))));
      charts.forEach(chart => chart.update(data, 86400));
    }

    async function refresh() {
      const found = await get(minutes ? "/api/statements?minutes=" + minutes : "/api/statements?order=" + order);
      let rows = rowsOf(found.statements);
      if (found.figures) {
        const texts = new Map(rows.map(row => [row.DIGEST, row]));
        rows = found.figures.map(row => ({ ...(texts.get(row.DIGEST) || { DIGEST_TEXT: "(evicted) " + row.DIGEST }), ROWS_SENT: null, P99_US: null, ...row }));
      }
      total = Math.max(1, ...rows.map(row => row.SUM_US));
      put(note, errorOf(found.statements), cutOf(found.statements));
      table.update(rows);
    }
    return { refresh, every: () => 10000 };
  },
};
