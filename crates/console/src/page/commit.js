// Commit path: what a commit's time is made of, and how flushes are shared.

import { h, put, s, card } from "./dom.js";
import { bytes, number, us } from "./format.js";
import { Chart } from "./chart.js";
import { History } from "./server.js";

const STAGES = ["prepare", "order_wait", "order_work", "queue", "write", "flush", "replica_wait", "archive_wait", "publish", "acknowledge"];
const MEANINGS = {
  prepare: "engines finish their redo, space in the log is reserved", order_wait: "waits for its place in the order", order_work: "the order is fixed, row locks are released",
  queue: "waits for the flush before", write: "records are written to the log", flush: "one sync of the log", replica_wait: "waits for a semi-synchronous replica", archive_wait: "waits for the repository of the archive",
  publish: "others may read it", acknowledge: "the reply leaves",
};
const SERIES = ["commits", "flush_groups", "log_syncs", "flush", "log_bytes", "binlog_bytes", "checkpoints", "checkpoint_age", ...STAGES.map(stage => "stage_" + stage)];

/// Microseconds of a stage for each commit.
const each = stage => series => (series["stage_" + stage] || []).map((spent, n) => series.commits[n] > 0 ? spent / series.commits[n] : 0);

export const commit = {
  id: "commit", title: "Commit path", needsLogin: false,
  create(root, { facts }) {
    const history = new History(0, SERIES);
    const strip = h("div", { class: "strip" }), legend = h("ul", { class: "stages" });
    const line = (label, name) => ({ label, of: series => series[name] });
    const charts = [
      new Chart({ title: "Time from COMMIT to OK, by stage", format: us, stacked: true, lines: STAGES.map(stage => ({ label: stage, of: each(stage) })) }),
      new Chart({ title: "Commits and flushes per second", format: number, lines: [line("commits", "commits"), line("groups", "flush_groups"), line("syncs", "log_syncs")] }),
      new Chart({ title: "Transactions in a flush group", format: number, lines: [{ label: "mean", of: series => (series.commits || []).map((commits, n) => series.flush_groups[n] > 0 ? commits / series.flush_groups[n] : null) }] }),
      new Chart({ title: "Flush latency", format: us, lines: [line("p50", "flush:p50"), line("p99", "flush:p99")] }),
      new Chart({ title: "Written per second", format: bytes, lines: [line("log", "log_bytes"), line("binary log", "binlog_bytes")] }),
      new Chart({ title: "Log since the checkpoint", format: bytes, lines: [line("bytes", "checkpoint_age")] }),
    ];
    charts[0].element.classList.add("wide");
    put(root, card("One commit, over the last minute", strip, legend), h("div", { class: "charts" }, charts.map(chart => chart.element)));
    return {
      every: () => 2000,
      async refresh() {
        if (facts.now && !facts.now.history) { put(strip, "metrics_history is OFF: there are no figures."); return; }
        const data = await history.load(), last = name => (data.series[name] || []).slice(-60).reduce((a, b) => a + b, 0);
        const commits = last("commits"), spent = STAGES.map(stage => commits > 0 ? last("stage_" + stage) / commits : 0);
        const total = spent.reduce((a, b) => a + b, 0);
        const svg = s("svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", role: "img", "aria-label": "Shares of the stages" });
        let from = 0;
        spent.forEach((time, n) => {
          const width = total > 0 ? 1000 * time / total : 0;
          if (width > 0.5) svg.append(s("rect", { class: "l" + n, x: from.toFixed(1), y: 0, width: width.toFixed(1), height: 20 }));
          from += width;
        });
        put(strip, total > 0 ? svg : h("p", { class: "weak" }, "No commit in the last minute."));
        put(legend, STAGES.map((stage, n) => h("li", null, h("i", { class: "mark l" + n }), h("b", null, stage), h("span", { class: "value" }, commits > 0 ? us(spent[n]) : "–"), h("span", { class: "weak" }, MEANINGS[stage]))));
        charts.forEach(chart => chart.update(data, 900));
      },
    };
  },
};
