// A number that opens its derivation.
import type { App } from "./app";
import { h } from "./dom";

export function num(app: App, term: string, text: string, name = ""): HTMLElement {
  return h(
    "button",
    {
      type: "button",
      class: "num",
      "data-term": term,
      "data-key": `num:${term}:${name}`,
      "aria-label": `${name ? `${name}: ` : ""}${text}, show how it is derived`,
      onclick: () => app.explain(term),
    },
    text,
  );
}

export const figure = (label: string, value: HTMLElement | string, note = ""): HTMLElement =>
  h("div", { class: "figure" }, h("dt", {}, label), h("dd", {}, value, note ? h("small", {}, note) : null));

export function section(id: string, title: string, ...children: Parameters<typeof h>[2][]): HTMLElement {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title`, class: "part" },
    h("h2", { id: `${id}-title` }, title),
    ...children,
  );
}
