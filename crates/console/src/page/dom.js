// Elements. Texts are set as text only, so no text of a statement can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/// Makes an element of HTML.
export const h = (name, properties, ...children) => fill(document.createElement(name), properties, children);

/// Makes an element of SVG.
export const s = (name, properties, ...children) => fill(document.createElementNS(SVG, name), properties, children);

/// Replaces the children of an element.
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/// Makes a section with a heading.
export function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", null, title), ...children);
}

/// A bar whose length is a share from 0 to 1.
export function bar(share) {
  const inner = h("span", { class: "bar-fill" });
  inner.style.setProperty("inline-size", (100 * Math.max(0, Math.min(1, share))).toFixed(1) + "%");
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/// A figure with its name.
export function figure(name, value, note, state) {
  return h("div", { class: "figure" + (state ? " " + state : "") },
    h("div", { class: "figure-name" }, name), h("div", { class: "figure-value" }, value), h("div", { class: "figure-note" }, note || " "));
}

/// A short word with a color.
export const badge = (text, state) => h("span", { class: "badge " + (state || "") }, text);
