// Two estimates, line by line: one is kept, the other is what the page shows.
import type { App } from "./app";
import { byId, fill, h } from "./dom";
import { fixed } from "./format";
import type { Comparison, Estimate } from "./types";

const KEPT_BY: [string, string][] = [
  ["memory.", "Memory"],
  ["step.", "The step"],
  ["run.", "The run"],
  ["recipe.", "Recipe"],
  ["cluster.", "Cluster"],
  ["model.", "Model"],
  ["compute.", "FLOPs"],
];

function lines(found: Comparison): HTMLElement {
  const shown = found.lines.filter((l) => l.ratio === null || Math.abs(l.ratio - 1) >= 0.001);
  if (shown.length === 0) return h("p", {}, "Both are the same.");
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "what differs"),
          h("th", { scope: "col" }, "kept"),
          h("th", { scope: "col" }, "shown"),
          h("th", { scope: "col" }, "shown / kept"),
        ),
      ),
      KEPT_BY.map(([prefix, title]) => {
        const rows = shown.filter((l) => l.path.startsWith(prefix));
        return rows.length === 0
          ? null
          : h(
              "tbody",
              {},
              h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: 4 }, title)),
              rows.map((l) =>
                h(
                  "tr",
                  {},
                  h("th", { scope: "row" }, l.path.slice(prefix.length).replaceAll("_", " ")),
                  h("td", {}, l.a),
                  h("td", {}, l.b),
                  h("td", {}, l.ratio === null ? "" : fixed(l.ratio, 3)),
                ),
              ),
            );
      }),
    ),
  );
}

export async function drawCompare(app: App): Promise<void> {
  const body = byId("compare-body");
  const keep = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "data-key": "keep",
      onclick: () => {
        app.state.compare = { ...app.state.request };
        app.redraw();
      },
    },
    app.state.compare ? "Keep this one instead" : "Keep this one to compare with",
  );
  if (!app.state.compare) {
    fill(body, h("p", { class: "row" }, keep));
    return;
  }
  const drop = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "data-key": "drop",
      onclick: () => {
        app.state.compare = null;
        app.redraw();
      },
    },
    "Forget the kept one",
  );
  const swap = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "data-key": "swap",
      onclick: () => {
        const kept = app.state.compare!;
        app.state.compare = { ...app.state.request };
        app.replace(kept);
      },
    },
    "Swap",
  );
  const kept = await app.engine.ask<Estimate>({ call: "estimate", request: app.state.compare });
  if (kept.error || !app.estimate) {
    fill(body, h("p", { class: "bad" }, kept.error ?? "nothing is shown"), h("p", { class: "row" }, keep, drop));
    return;
  }
  const found = await app.engine.ask<Comparison>({ call: "compare", a: kept, b: app.estimate });
  fill(
    body,
    h("p", {}, `Kept: ${found.a}. Shown: ${found.b}.`),
    lines(found),
    h("p", { class: "row" }, keep, swap, drop),
  );
}
