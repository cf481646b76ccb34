// Files for frameworks, downloads, and sharing by address.
import type { App } from "./app";
import { announce, byId, h } from "./dom";
import type { Found } from "./plan_search";
import { commandLine } from "./state";

function save(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} copied`);
  } catch {
    announce(`${what} could not be copied: select it instead`);
  }
}

// Lines end before flags, as the command line breaks them, and never within one.
const flagByFlag = (command: string): (string | HTMLElement)[] =>
  command.split(/ (?=--)/).flatMap((part, i) => [i > 0 ? " " : "", h("span", {}, part)]);

// A command line to take along; `of` says which one where the page shows several.
export function commandToCopy(command: string, of: string, id: string): HTMLElement {
  const button = {
    type: "button",
    class: "quiet",
    "data-key": `copy:${id}`,
    "aria-label": `Copy the command ${of}`,
    onclick: () => void copy(command, "Command"),
  };
  return h(
    "p",
    { class: "command", id: `command-${id}` },
    h("code", {}, flagByFlag(command)),
    " ",
    h("button", button, "Copy"),
  );
}

const name = (app: App): string => `preflop-${app.estimate?.model.name ?? "run"}`.replace(/[^\w.-]+/g, "-");

async function showExport(app: App, format: string): Promise<void> {
  const body = byId("export-body");
  const found = await app.engine.ask<{ text: string; left_out: string[] }>({
    call: "export",
    to: format,
    request: app.state.request,
  });
  if (found.error) {
    body.replaceChildren(h("p", { class: "bad" }, found.error));
    return;
  }
  const ending: Record<string, string> = {
    megatron: "sh",
    slurm: "sh",
    deepspeed: "json",
    accelerate: "yaml",
    nanotron: "yaml",
  };
  body.replaceChildren(
    h("pre", { tabindex: "0", role: "region", "aria-label": `${format} file`, id: "export-text" }, found.text),
    found.left_out.length ? h("p", { class: "hint" }, `The format cannot carry: ${found.left_out.join(", ")}.`) : "",
    h(
      "p",
      { class: "row" },
      h("button", { type: "button", class: "quiet", onclick: () => void copy(found.text, "File") }, "Copy"),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => save(`${name(app)}-${format}.${ending[format] ?? "txt"}`, found.text, "text/plain"),
        },
        "Download",
      ),
    ),
  );
  announce(`Arguments for ${format}`);
}

export function filesSection(app: App, formats: string[], found: () => Found | null): HTMLElement {
  const report = (format: string, ending: string, type: string) => async (): Promise<void> => {
    const made = await app.engine.ask<{ text: string }>({ call: "report", format, request: app.state.request });
    if (!made.error) save(`${name(app)}.${ending}`, made.text, type);
  };
  const json = async (): Promise<void> =>
    save(
      `${name(app)}.json`,
      `${await app.engine.text({ call: "estimate", request: app.state.request })}\n`,
      "application/json",
    );
  const button = (label: string, act: () => Promise<void> | void): HTMLElement =>
    h("button", { type: "button", class: "quiet", "data-key": `file:${label}`, onclick: () => void act() }, label);
  return h(
    "div",
    {},
    h("h3", {}, "For a framework"),
    h(
      "p",
      { class: "row", role: "group", "aria-label": "Export to" },
      formats.map((f) => button(f, () => showExport(app, f))),
    ),
    h("div", { id: "export-body" }),
    h("h3", {}, "To keep"),
    h(
      "p",
      { class: "row", role: "group", "aria-label": "Download" },
      button("JSON", json),
      button("Report, HTML", report("html", "html", "text/html")),
      button("Report, Markdown", report("md", "md", "text/markdown")),
      button("Pictures, SVG", report("svg", "svg", "image/svg+xml")),
      button("Plan, JSON", () => {
        const plan = found();
        if (plan) save(`${name(app)}-plan.json`, `${plan.text}\n`, "application/json");
      }),
    ),
    h("h3", {}, "On the command line"),
    commandToCopy(commandLine("estimate", app.state.request), "of this estimate", "estimate"),
  );
}
