// Storage: tables and indexes by size and use, the log, checkpoints.

import { bar, card, figure, h, put } from "./dom.js";
import { bytes, number, text } from "./format.js";
import { Chart } from "./chart.js";
import { History, get, rowsOf } from "./server.js";
import { Table, cutOf, errorOf } from "./table.js";

export const storage = {
  id: "storage", title: "Storage", needsLogin: true,
  create(root) {
    let most = 1;
    const size = row => Number(row.DATA_LENGTH || 0) + Number(row.INDEX_LENGTH || 0);
    const tables = new Table([
      { name: "Table", of: row => row.TABLE_SCHEMA + "." + row.TABLE_NAME, class: "code" }, { name: "Size", isNumber: true, of: size, show: value => [bytes(value), bar(value / most)] },
      { name: "Rows, about", isNumber: true, of: row => row.TABLE_ROWS, show: number }, { name: "Data", isNumber: true, of: row => row.DATA_LENGTH, show: bytes },
      { name: "Indexes", isNumber: true, of: row => row.INDEX_LENGTH, show: bytes }, { name: "Free", isNumber: true, of: row => row.DATA_FREE, show: bytes }, { name: "Engine", of: row => row.ENGINE },
    ], { caption: "Tables by size", empty: "No table." });
    const indexes = new Table([
      { name: "Index", of: row => row.OBJECT_SCHEMA + "." + row.OBJECT_NAME + "." + row.INDEX_NAME, class: "code" },
      { name: "Rows read", isNumber: true, of: row => row.COUNT_READ, show: number }, { name: "Rows changed", isNumber: true, of: row => row.COUNT_WRITE, show: number },
    ], { caption: "Indexes by use", empty: "No index was used." });
    const logs = new Table([{ name: "Binary log", of: row => row.Log_name, class: "code" }, { name: "Size", isNumber: true, of: row => row.File_size, show: bytes }], { caption: "Binary logs", empty: "The binary log is off." });
    const history = new History(1, ["data_read", "data_written", "log_bytes", "checkpoints", "checkpoint_age", "disk_free", "pool_pages", "pool_dirty", "data_blocks", "data_free_blocks"]);
    const line = (label, name) => ({ label, of: series => series[name] });
    const charts = [
      new Chart({ title: "Data files per second", format: bytes, lines: [line("read", "data_read"), line("written", "data_written")] }),
      new Chart({ title: "Log since the checkpoint", format: bytes, lines: [line("bytes", "checkpoint_age:max")] }),
      new Chart({ title: "Pages in the buffer pool", format: number, lines: [line("pages", "pool_pages"), line("changed", "pool_dirty")] }),
      new Chart({ title: "Disk free", format: bytes, lines: [line("free", "disk_free")] }),
    ];
    const note = h("div"), figures = h("div", { class: "figures" }), hint = h("p", { class: "weak" });
    put(root, note, figures, h("div", { class: "charts" }, charts.map(chart => chart.element)), card("Tables by size", tables.element), card("Indexes by use", hint, indexes.element), card("Binary logs", logs.element));
    return {
      every: () => 15000,
      async refresh() {
        const found = await get("/api/storage"), rows = rowsOf(found.tables);
        most = Math.max(1, ...rows.map(size));
        put(note, errorOf(found.tables), cutOf(found.tables));
        tables.update(rows);
        const isCounted = Number((rowsOf(found.userstat)[0] || {}).userstat) === 1;
        put(hint, errorOf(found.indexes) || (isCounted ? "" : "userstat is OFF: the use of indexes is not counted."));
        indexes.update(rowsOf(found.indexes));
        const files = rowsOf(found.binlogs);
        logs.update(files);
        const sum = (all, of) => all.reduce((a, row) => a + Number(of(row) || 0), 0);
        let last = () => undefined;
        try {
          const data = await history.load();
          last = name => (data.series[name] || []).at(-1);
          charts.forEach(chart => chart.update(data, 10800));
        } catch (error) { if (error.status !== 404) throw error; }
        put(figures, figure("Tables", bytes(sum(rows, size)), text(rows.length) + " shown"), figure("Binary logs", bytes(sum(files, row => row.File_size)), files.length + " files"),
          figure("Log since the checkpoint", bytes(last("checkpoint_age")), " "), figure("Disk free", bytes(last("disk_free")), " "));
      },
    };
  },
};
