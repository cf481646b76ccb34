// The derivation panel: any number, down to the data and their sources, in the core's own lines.
import type { App } from "./app";
import { announce, byId, h } from "./dom";
import type { Explained } from "./types";

interface Line {
  text: string;
  inner: Line[];
}

// Lines by indent become a tree.
function nested(lines: { indent: number; text: string }[]): Line[] {
  const root: Line = { text: "", inner: [] };
  const open: { indent: number; line: Line }[] = [{ indent: -1, line: root }];
  for (const { indent, text } of lines) {
    while (open[open.length - 1]!.indent >= indent) open.pop();
    const line: Line = { text, inner: [] };
    open[open.length - 1]!.line.inner.push(line);
    open.push({ indent, line });
  }
  return root.inner;
}

function shown(line: Line, depth: number): HTMLElement {
  const source = line.text.startsWith("source: "),
    plain = line.text.replace(" (-v shows them)", "");
  const formula = line.text.startsWith("= ");
  const text = source ? line.text.slice("source: ".length) : plain;
  const equals = source || formula ? -1 : text.indexOf(" = ");
  const says = equals < 0 ? [text] : [h("b", {}, text.slice(0, equals)), text.slice(equals)];
  const kind = source ? "source" : formula ? "formula" : "term";
  const parts = line.inner.filter((l) => !/^(source: |= )/.test(l.text));
  const own = line.inner.filter((l) => /^(source: |= )/.test(l.text));
  return h(
    "li",
    { class: kind },
    h("div", { class: "line" }, says),
    own.map((l) =>
      h(
        "div",
        { class: l.text.startsWith("= ") ? "formula" : "source" },
        l.text.startsWith("= ") ? l.text : l.text.slice("source: ".length),
      ),
    ),
    parts.length === 0
      ? null
      : depth < 2
        ? h(
            "ul",
            {},
            parts.map((l) => shown(l, depth + 1)),
          )
        : h(
            "details",
            {},
            h("summary", {}, `${parts.length} ${parts.length === 1 ? "part" : "parts"}`),
            h(
              "ul",
              {},
              parts.map((l) => shown(l, depth + 1)),
            ),
          ),
  );
}

let returnTo: HTMLElement | SVGElement | null = null;

export function closeExplanation(): void {
  const drawer = byId("drawer");
  if (drawer.hidden) return;
  drawer.hidden = true;
  document.body.classList.remove("explaining");
  if (returnTo?.isConnected) returnTo.focus();
}

function frame(title: string, ...body: Parameters<typeof h>[2][]): void {
  byId("drawer").replaceChildren(
    h(
      "div",
      { class: "drawer-head" },
      h("h2", { tabindex: "-1", id: "drawer-title" }, title),
      h("button", { type: "button", class: "quiet", id: "drawer-close", onclick: closeExplanation }, "Close"),
    ),
    h("div", { class: "drawer-body", tabindex: "0", role: "region", "aria-labelledby": "drawer-title" }, ...body),
  );
}

export async function showExplanation(app: App, term: string, everything = false): Promise<void> {
  const drawer = byId("drawer");
  const active = document.activeElement;
  if (drawer.hidden && (active instanceof HTMLElement || active instanceof SVGElement)) returnTo = active;
  drawer.hidden = false;
  document.body.classList.add("explaining");
  frame(term, h("p", { class: "loading" }, "Deriving …"));
  const call = { call: "explain", term, request: app.state.request };
  const found = await app.engine.ask<Explained>({ ...call, format: "lines", everything });
  if (found.error) {
    frame(term, h("p", { class: "bad" }, found.error));
  } else {
    const [name, ...rest] = found.head.split(" = ");
    frame(
      name ?? term,
      h("p", { class: "value" }, rest.join(" = ")),
      h("p", { class: "about" }, [found.path !== term ? found.path : "", found.about].filter(Boolean).join(" · ")),
      h(
        "ul",
        { class: "tree" },
        nested(found.lines).map((l) => shown(l, 0)),
      ),
      h(
        "p",
        { class: "row" },
        everything || !found.lines.some((l) => l.text.includes("(-v shows them)"))
          ? null
          : h(
              "button",
              { type: "button", class: "quiet", onclick: () => void showExplanation(app, term, true) },
              "Every term",
            ),
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            onclick: async (event) => {
              const text = await app.engine.ask<{ text: string }>({ ...call, format: "txt" });
              (event.target as HTMLElement).closest("p")?.replaceWith(h("pre", { tabindex: "0" }, text.text));
            },
          },
          "As the command line prints it",
        ),
      ),
    );
  }
  byId("drawer-title").focus();
  announce(`Derivation of ${term}`);
}
