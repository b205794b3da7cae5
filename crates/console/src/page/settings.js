// Settings that differ from their defaults.

import { badge, card, h, put } from "./dom.js";
import { text } from "./format.js";
import { get, rowsOf } from "./server.js";
import { Table, errorOf } from "./table.js";

export const settings = {
  id: "settings", title: "Settings", needsLogin: true,
  create(root) {
    let rows = [];
    const filter = h("input", { type: "search", placeholder: "Find a setting", "aria-label": "Find a setting", oninput: () => draw() });
    const table = new Table([
      { name: "Setting", of: row => String(row.VARIABLE_NAME).toLowerCase(), show: (value, row) => [h("div", { class: "code" }, value), h("div", { class: "weak small" }, text(row.VARIABLE_COMMENT))], class: "wide" },
      { name: "Value", of: row => row.GLOBAL_VALUE, class: "code value" }, { name: "Default", of: row => row.DEFAULT_VALUE, class: "code value weak" },
      { name: "From", of: row => row.GLOBAL_VALUE_ORIGIN, show: (value, row) => [badge(text(value).toLowerCase(), "plain"), row.READ_ONLY === "YES" ? badge("start only", "plain") : null] },
    ], { caption: "Changed settings", empty: "All settings have their defaults.", sort: 0 });
    table.sort.down = false;
    table.drawHead();
    const note = h("div");
    const draw = () => table.update(rows.filter(row => String(row.VARIABLE_NAME).toLowerCase().includes(filter.value.trim().toLowerCase())));
    put(root, note, card("Settings that differ from their defaults", filter, table.element));
    return {
      every: () => 30000,
      async refresh() {
        const found = await get("/api/settings");
        put(note, errorOf(found.settings));
        rows = rowsOf(found.settings);
        draw();
      },
    };
  },
};
