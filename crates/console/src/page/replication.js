// Replication: sources of this server, its replicas, and positions.

import { badge, card, figure, h, put } from "./dom.js";
import { bytes, number, seconds, text } from "./format.js";
import { Chart } from "./chart.js";
import { History, get, rowsOf } from "./server.js";
import { Table, errorOf } from "./table.js";

const running = value => badge(text(value), value === "Yes" ? "good" : value === "No" ? "bad" : "warn");

function sourceCard(row) {
  const wrong = [row.Last_IO_Error, row.Last_SQL_Error].filter(Boolean);
  return h("section", { class: "card" }, h("h2", null, "Source " + (row.Connection_name || "") + " " + text(row.Master_Host) + ":" + text(row.Master_Port)),
    h("div", { class: "figures" },
      figure("Receiver", running(row.Slave_IO_Running), text(row.Slave_IO_State)), figure("Applier", running(row.Slave_SQL_Running), text(row.Slave_SQL_Running_State)),
      figure("Behind", row.Seconds_Behind_Master === null ? "–" : seconds(row.Seconds_Behind_Master), "of the source", row.Seconds_Behind_Master > 10 ? "warn" : ""),
      figure("Relay log", bytes(row.Relay_Log_Space), text(row.Relay_Log_File))),
    wrong.map(message => h("p", { class: "notice" }, message)),
    h("dl", { class: "pairs" }, [["GTID received", row.Gtid_IO_Pos], ["GTID mode", row.Using_Gtid], ["Position", text(row.Relay_Master_Log_File) + ":" + text(row.Exec_Master_Log_Pos)], ["User", row.Master_User], ["TLS", row.Master_SSL_Allowed]]
      .map(([name, value]) => [h("dt", null, name), h("dd", { class: "code" }, text(value) || "–")])));
}

export const replication = {
  id: "replication", title: "Replication", needsLogin: true,
  create(root) {
    const history = new History(1, ["behind_s", "behind_transactions", "relay_log", "binlog_bytes"]);
    const line = (label, name) => ({ label, of: series => series[name] });
    const charts = [
      new Chart({ title: "Behind the source", format: seconds, lines: [line("seconds", "behind_s:max")] }),
      new Chart({ title: "Transactions not applied", format: number, lines: [line("transactions", "behind_transactions:max")] }),
      new Chart({ title: "Binary log written per second", format: bytes, lines: [line("bytes", "binlog_bytes")] }),
    ];
    const replicas = new Table([{ name: "Server id", isNumber: true, of: row => row.Server_id }, { name: "Host", of: row => row.Host }, { name: "Port", isNumber: true, of: row => row.Port }],
      { caption: "Replicas", empty: "No replica is connected." });
    const sources = h("div", { class: "page" }), own = h("div"), semi = h("dl", { class: "pairs" }), note = h("div");
    put(root, note, sources, card("This server", own), card("Replicas", replicas.element), h("div", { class: "charts" }, charts.map(chart => chart.element)), card("Semi-synchronous replication", semi));
    return {
      every: () => 10000,
      async refresh() {
        const found = await get("/api/replication"), positions = rowsOf(found.positions)[0] || {}, log = rowsOf(found.binlog)[0];
        const all = rowsOf(found.sources);
        put(note, errorOf(found.sources));
        put(sources, all.length ? all.map(sourceCard) : found.sources.error ? null : h("section", { class: "card" }, h("h2", null, "Sources"), h("p", { class: "weak" }, "This server has no source.")));
        put(own, errorOf(found.binlog), h("dl", { class: "pairs" }, [["Server id", positions.server_id], ["GTID domain", positions.gtid_domain_id], ["gtid_binlog_pos", positions.gtid_binlog_pos], ["gtid_slave_pos", positions.gtid_slave_pos],
          ["Binary log", log ? log.File + ":" + log.Position : "off"]].map(([name, value]) => [h("dt", null, name), h("dd", { class: "code" }, text(value) || "–")])));
        put(note, errorOf(found.replicas));
        replicas.update(rowsOf(found.replicas));
        put(semi, rowsOf(found.semi_sync).map(row => [h("dt", null, text(row.VARIABLE_NAME).replace(/^Rpl_semi_sync_/i, "")), h("dd", { class: "code" }, text(row.VARIABLE_VALUE))]));
        try { const data = await history.load(); charts.forEach(chart => chart.update(data, 10800)); } catch (error) { if (error.status !== 404) throw error; }
      },
    };
  },
};
