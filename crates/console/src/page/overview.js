// Overview: health in one line, and the figures of the last minutes, hours or day.

import { badge, figure, h, put } from "./dom.js";
import { bytes, number, percent, seconds, us } from "./format.js";
import { Chart } from "./chart.js";
import { History } from "./server.js";

const RANGES = [["15 min", 0, 900, 2000], ["3 h", 1, 10800, 10000], ["24 h", 2, 86400, 60000]];

const SERIES = ["commits", "questions", "errors", "statements", "changes", "flush", "connected", "running", "pool_requests", "pool_reads",
  "log_bytes", "binlog_bytes", "data_written", "data_read", "history_length", "disk_free", "memory", "bytes_sent", "bytes_received",
  "row_lock_waits", "row_locks_waiting", "deadlocks", "slow_queries", "select", "insert", "update", "delete", "behind_s", "aborted_connects", "access_denied"];

const line = (label, name, format) => ({ label, of: series => series[name], format });
/// Share of pages found in the pool.
const hitRate = series => (series.pool_requests || []).map((all, n) => all > 0 ? 1 - Math.min(1, series.pool_reads[n] / all) : null);

const CHARTS = [
  { title: "Statements per second", format: number, stacked: true, lines: [line("select", "select"), line("insert", "insert"), line("update", "update"), line("delete", "delete"),
    { label: "other", of: v => (v.questions || []).map((all, n) => Math.max(0, all - v.select[n] - v.insert[n] - v.update[n] - v.delete[n])) }] },
  { title: "Latency of statements", note: "Until the reply may leave, so with the flush", format: us, lines: [line("p50", "statements:p50"), line("p99", "statements:p99")] },
  { title: "Commits per second", format: number, lines: [line("commits", "commits")] },
  { title: "Latency of changes and commits", note: "INSERT, REPLACE, UPDATE, DELETE, COMMIT", format: us, lines: [line("p50", "changes:p50"), line("p99", "changes:p99")] },
  { title: "Flush latency", format: us, lines: [line("p50", "flush:p50"), line("p99", "flush:p99")] },
  { title: "Errors per second", format: number, lines: [line("statements", "errors"), line("rejected logins", "access_denied"), line("slow statements", "slow_queries")] },
  { title: "Connections", format: number, lines: [line("open", "connected"), line("running", "running:max")] },
  { title: "Row locks", format: number, lines: [line("waits/s", "row_lock_waits"), line("waiting", "row_locks_waiting:max"), line("deadlocks/s", "deadlocks")] },
  { title: "Buffer pool hit rate", format: percent, lines: [{ label: "found in memory", of: hitRate }] },
  { title: "Written per second", format: bytes, lines: [line("log", "log_bytes"), line("binary log", "binlog_bytes"), line("data files", "data_written")] },
  { title: "Network per second", format: bytes, lines: [line("sent", "bytes_sent"), line("received", "bytes_received")] },
  { title: "History length", note: "Transactions whose old row versions are kept", format: number, lines: [line("transactions", "history_length")] },
];

function health(facts, flush) {
  const { health: of } = facts, parts = [];
  parts.push(badge("commits are durable", "good"));
  if (of.sources > 0) parts.push(badge(of.behind_s > 10 ? "replica is " + seconds(of.behind_s) + " behind" : "replica is up to date", of.behind_s > 60 ? "bad" : of.behind_s > 10 ? "warn" : "good"));
  if (of.replicas > 0) parts.push(badge(of.replicas + (of.replicas === 1 ? " replica" : " replicas"), "good"));
  if (of.archive) parts.push(badge(of.archive_running ? "archive " + (of.archive_lag_s > 60 ? seconds(of.archive_lag_s) + " behind" : "is up to date") : "archive does not run", !of.archive_running ? "bad" : of.archive_lag_s > 60 ? "warn" : "good"));
  if (of.archive_sync) parts.push(of.archive_sync_on ? badge("commits wait for the archive", "good") : badge("commits go on without the archive", "bad"));
  parts.push(badge(bytes(of.disk_free) + " of disk free", of.disk_free < 1 << 30 ? "bad" : of.disk_free < 10 * 2 ** 30 ? "warn" : "good"));
  if (flush !== undefined && flush !== null) parts.push(badge("flush p99 " + us(flush), flush > 1e6 ? "bad" : flush > 1e5 ? "warn" : "good"));
  if (of.slow_flushes > 0) parts.push(badge(number(of.slow_flushes) + " slow flushes", "warn"));
  if (of.checkpoint_failures > 0) parts.push(badge(number(of.checkpoint_failures) + " checkpoints failed", "bad"));
  return parts;
}

const latest = (series, name) => (series[name] || []).at(-1);
/// Mean of the newest slots.
function recent(values, count) {
  const last = (values || []).slice(-count).filter(value => value !== null);
  return last.length ? last.reduce((a, b) => a + b, 0) / last.length : null;
}

export const overview = {
  id: "overview", title: "Overview", needsLogin: false,
  create(root, { facts }) {
    let range = 0, history = new History(RANGES[0][1], SERIES);
    const line = h("div", { class: "health", "aria-label": "Health" });
    const figures = h("div", { class: "figures" });
    const charts = CHARTS.map(chart => new Chart(chart));
    const buttons = RANGES.map(([name], n) => h("button", { type: "button", "aria-pressed": String(n === 0), onclick: () => choose(n) }, name));
    const choose = async n => {
      range = n;
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === n)));
      history = new History(RANGES[n][1], SERIES);
      await refresh();
    };
    put(root, line, figures, h("div", { class: "ranges", role: "group", "aria-label": "Range of time" }, buttons), h("div", { class: "charts" }, charts.map(chart => chart.element)));

    async function refresh() {
      if (facts.now && !facts.now.history) { put(line, badge("metrics_history is OFF: there are no charts", "warn")); return; }
      const asked = history, data = await asked.load();
      if (asked !== history) return;
      const series = data.series, count = range === 0 ? 5 : 1;
      if (facts.now) put(line, health(facts.now, recent(series["flush:p99"], 3 * count)));
      const max = facts.now ? facts.now.max_connections : 0, open = latest(series, "connected");
      put(figures,
        figure("Statements/s", number(recent(series.questions, count)), "p99 " + us(recent(series["statements:p99"], count))),
        figure("Commits/s", number(recent(series.commits, count)), "p99 " + us(recent(series["changes:p99"], count))),
        figure("Errors/s", number(recent(series.errors, count)), number(recent(series.access_denied, count)) + " rejected logins/s", recent(series.errors, count) > 10 ? "warn" : ""),
        figure("Connections", number(open), "of " + number(max) + ", " + number(latest(series, "running")) + " running", open > 0.9 * max ? "warn" : ""),
        figure("Buffer pool hits", percent(recent(hitRate(series), count)), number(recent(series.pool_reads, count)) + " reads/s"),
        figure("History length", number(latest(series, "history_length")), "transactions"),
        figure("Disk free", bytes(latest(series, "disk_free")), bytes(recent(series.data_written, count)) + "/s written"),
        figure("Sessions' memory", bytes(latest(series, "memory")), " "));
      charts.forEach(chart => chart.update(data, RANGES[range][2]));
    }
    return { refresh, every: () => RANGES[range][3] };
  },
};
