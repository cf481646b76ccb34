// What a plan is best by, where else to look, and what the search may do.
import type { App } from "./app";
import { h } from "./dom";

const OBJECTIVES = ["time", "cost", "gpu-hours", "energy", "memory", "gpus", "seq", "micro-batch"];
const OPEN: [string, string][] = [
  ["", "nothing"],
  ["precision", "precision"],
  ["optimizer", "optimizer"],
  ["precision,optimizer", "both"],
];
const TIGHT: [string, string][] = [
  ["", "no"],
  ["true", "yes"],
];

// As the reader left it.
let furtherOpen: boolean | null = null;

function setSearch(app: App, key: string, value: string): void {
  const { [key]: _before, ...rest } = app.state.search;
  app.state.search = value === "" ? rest : { ...rest, [key]: value };
  app.redraw();
}

function choice(app: App, key: string, label: string, values: [string, string][]): HTMLElement {
  const now = app.state.search[key] ?? "";
  const known = values.some(([value]) => value === now) ? values : [...values, [now, now] as [string, string]];
  const id = `search-${key}`;
  const onchange = (event: Event): void => setSearch(app, key, (event.target as HTMLSelectElement).value);
  const options = known.map(([value, says]) => h("option", { value, selected: value === now }, says));
  return h("div", { class: "field" }, h("label", { for: id }, label), h("select", { id, onchange }, options));
}

function entry(app: App, key: string, label: string, placeholder: string): HTMLElement {
  const id = `search-${key}`;
  const onchange = (event: Event): void => setSearch(app, key, (event.target as HTMLInputElement).value.trim());
  const value = app.state.search[key] ?? "";
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("input", { id, value, placeholder, autocomplete: "off", onchange }),
  );
}

export function planControls(app: App): HTMLElement {
  const objective = h(
    "select",
    {
      id: "objective",
      onchange: (event) => {
        app.state.objective = (event.target as HTMLSelectElement).value;
        app.redraw();
      },
    },
    OBJECTIVES.map((o) => h("option", { value: o, selected: o === app.state.objective }, o)),
  );
  const clusters = h("input", {
    id: "clusters",
    value: app.state.clusters,
    placeholder: "32..256xh100-sxm, 64xb200",
    autocomplete: "off",
    onchange: (event) => {
      app.state.clusters = (event.target as HTMLInputElement).value.trim();
      app.redraw();
    },
  });
  const ontoggle = (event: Event): void => {
    furtherOpen = (event.target as HTMLDetailsElement).open;
  };
  return h(
    "div",
    {},
    h(
      "p",
      { class: "row" },
      h("label", { for: "objective" }, "Best by"),
      objective,
      h("label", { for: "clusters" }, "Look at other clusters, too"),
      clusters,
    ),
    h(
      "details",
      { class: "search", open: furtherOpen ?? Object.keys(app.state.search).length > 0, ontoggle },
      h("summary", {}, "More of the search"),
      h(
        "div",
        { class: "grid" },
        entry(app, "max_memory", "Most memory on the device", "72GiB"),
        entry(app, "top", "Plans shown", "5"),
        choice(app, "open", "Numerics that may change", OPEN),
        choice(app, "allow_tight", "Tight plans, too", TIGHT),
      ),
    ),
  );
}
