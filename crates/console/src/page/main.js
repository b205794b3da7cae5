// The frame of the console: head, pages, login.

import { h, put, badge } from "./dom.js";
import { seconds } from "./format.js";
import { get, logIn, logOut, me, onLogin, resume } from "./server.js";
import { commit } from "./commit.js";
import { errors } from "./errors.js";
import { locks } from "./locks.js";
import { overview } from "./overview.js";
import { replication } from "./replication.js";
import { sessions } from "./sessions.js";
import { settings } from "./settings.js";
import { statements } from "./statements.js";
import { storage } from "./storage.js";

const PAGES = [overview, statements, sessions, locks, commit, replication, storage, settings, errors];
const FACTS_EVERY_MS = 5000;

const head = document.getElementById("head"), nav = document.getElementById("nav"), content = document.getElementById("content");
const facts = { now: null };
let page = null, timer = 0, turn = 0;

const name = h("a", { class: "brand", href: "#overview" }, "Cohort");
const server = h("span", { class: "server" });
const tags = h("span", { class: "tags" });
const state = h("span", { class: "state", role: "status" });
const user = h("span", { class: "user" });
const menu = h("button", { class: "menu", type: "button", "aria-expanded": "false", "aria-controls": "nav", onclick: () => openMenu(!nav.classList.contains("open")) }, "Menu");
put(head, name, server, tags, state, user, menu);

function openMenu(isOpen) {
  nav.classList.toggle("open", isOpen);
  menu.setAttribute("aria-expanded", String(isOpen));
}

document.addEventListener("keydown", event => { if (event.key === "Escape") openMenu(false); });

function drawUser() {
  const account = me();
  put(user, account
    ? [h("span", { class: "who" }, account.user + "@" + account.host), h("button", { type: "button", class: "quiet", onclick: () => logOut() }, "Log out")]
    : null);
}

function drawNav() {
  put(nav, h("ul", null, PAGES.map(other => h("li", null,
    h("a", { href: "#" + other.id, "aria-current": page && page.id === other.id ? "page" : null }, other.title)))));
}

async function look() {
  try {
    const found = facts.now = await get("/api/facts");
    put(server, found.host + ":" + found.port);
    put(tags, badge(found.role, "plain"), found.read_only ? badge("read only", "warn") : null);
    put(state, h("i", { class: "pulse", "aria-hidden": "true" }), "up " + seconds(found.uptime_s));
    state.className = "state";
    document.title = found.host + ":" + found.port + " – Cohort";
  } catch (error) {
    if (error.status === 401) { put(state, "log in to see figures"); }
    else { put(state, "no answer from the server"); state.className = "state lost"; }
  }
}

function loginForm(text) {
  const wrong = h("p", { class: "notice", role: "alert", hidden: true });
  const form = h("form", { class: "login card" }, h("h2", null, "Log in"), h("p", { class: "weak" }, text),
    h("label", null, "Account", h("input", { name: "user", autocomplete: "username", required: true, maxlength: 128, spellcheck: "false", autocapitalize: "none" })),
    h("label", null, "Password", h("input", { name: "password", type: "password", autocomplete: "current-password" })),
    wrong, h("button", { type: "submit", class: "main" }, "Log in"));
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await logIn(form.elements.user.value, form.elements.password.value);
    } catch (error) {
      put(wrong, error.message);
      wrong.hidden = false;
      form.elements.password.value = "";
      form.elements.password.focus();
    }
    button.disabled = false;
  });
  return form;
}

/// Shows the page that the address names.
async function show() {
  const id = location.hash.slice(1).split("?")[0];
  page = PAGES.find(other => other.id === id) || overview;
  const own = ++turn;
  clearTimeout(timer);
  openMenu(false);
  drawNav();
  drawUser();
  if (page.needsLogin && !me()) {
    put(content, h("h1", null, page.title), loginForm("This page shows what the account may see by SQL: texts of statements, sessions and settings need the privilege PROCESS."));
    return;
  }
  const root = h("div", { class: "page" });
  const problem = h("p", { class: "notice", role: "alert", hidden: true });
  put(content, h("h1", null, page.title), problem, root);
  const view = page.create(root, { facts });
  const step = async () => {
    if (own !== turn) return;
    if (!document.hidden) {
      try {
        await view.refresh();
        problem.hidden = true;
      } catch (error) {
        if (own !== turn) return;
        if (error.status === 401) { put(content, h("h1", null, page.title), loginForm("Figures from other addresses than the server's own need a login.")); return; }
        put(problem, error.message);
        problem.hidden = false;
      }
    }
    if (own === turn) timer = setTimeout(step, view.every ? view.every() : 5000);
  };
  await step();
}

window.addEventListener("hashchange", () => { show(); content.focus({ preventScroll: true }); });
onLogin(show);

(async () => {
  await resume();
  await look();
  setInterval(() => { if (!document.hidden) look(); }, FACTS_EVERY_MS);
  if (turn === 0) await show();
})();
