// The question: model, cluster, run, recipe. What is not given shows the value that was assumed.
import type { App } from "./app";
import { h } from "./dom";
import { count, memory } from "./format";
import type { Estimate, GpuRow, Key, ModelRow, Request } from "./types";

// In sight; every other key is under "More", by group.
const SHOWN: [string, string][] = [
  ["tp", "Tensor"],
  ["pp", "Pipeline"],
  ["cp", "Context"],
  ["ep", "Expert"],
  ["vpp", "Virtual"],
  ["zero", "ZeRO"],
  ["micro_batch", "Micro-batch"],
  ["global_batch", "Global batch"],
  ["seq", "Sequence"],
  ["recompute", "Recompute"],
  ["precision", "Precision"],
  ["stack", "Stack"],
];
const GROUPS: Record<string, string> = {
  batch: "Batch",
  parallel: "Parallel sizes",
  numerics: "Numerics",
  memory: "Memory",
  software: "Software",
  model: "Model",
  stack: "Stack",
  run: "The run",
  finetune: "Fine-tuning",
  "fine-tuning": "Fine-tuning",
};

const DEFAULT_ON = "64xh100-sxm";

// As the reader left them.
let recipeOpen: boolean | null = null;
let moreOpen: boolean | null = null;

// The words that a key takes, where they are fixed: of its grammar, or the names of a catalogue, which come later.
function wordsOf(app: App, { name, value }: Key): string[] | null {
  if (app.names[name] !== undefined) return app.names[name];
  if (value === "") return ["true", "false"];
  const range = /^(\d)-(\d)$/.exec(value);
  if (range)
    return Array.from({ length: Number(range[2]) - Number(range[1]) + 1 }, (_, i) => `${Number(range[1]) + i}`);
  return /^[a-z\d_-]+(\|[a-z\d_-]+)+$/.test(value) ? value.split("|") : null;
}
const wordOptions = (words: string[]): HTMLElement[] => words.map((value) => h("option", { value }));

function field(app: App, key: Key, label: string): HTMLElement {
  const id = `key-${key.name}`;
  const words = wordsOf(app, key);
  const input = h("input", {
    id,
    list: words !== null ? `${id}-words` : null,
    name: key.name,
    autocomplete: "off",
    spellcheck: "false",
    "data-key": id,
    "aria-describedby": `${id}-about`,
    value: String(app.state.request[key.name] ?? ""),
    title: key.help,
    onchange: (event) => {
      const value = (event.target as HTMLInputElement).value.trim();
      app.change({ [key.name]: value === "" ? null : value });
    },
  });
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    input,
    words !== null ? h("datalist", { id: `${id}-words` }, wordOptions(words)) : null,
    h("span", { class: "sr", id: `${id}-about` }, `${key.help}${key.value ? `: ${key.value}` : ": true or false"}`),
    h("span", { class: "assumed", id: `${id}-assumed`, "aria-live": "off" }),
  );
}

function splitOn(on: string): [string, string] {
  const found = /^(\d+)x(.+)$/.exec(on);
  return found ? [found[1]!, found[2]!] : ["1", on];
}

// Choices of GPUs and models: empty until the lists are there.
function gpuOptions(app: App): HTMLElement[] {
  const [, chosen] = splitOn(String(app.state.request.on ?? DEFAULT_ON));
  const size = (g: GpuRow): string => {
    const bytes = g.data.capacity_bytes?.value;
    return typeof bytes === "number" ? ` · ${memory(bytes, 0)}` : "";
  };
  const own = app.gpus.some((g) => g.id === chosen) ? [] : [h("option", { value: chosen, selected: true }, chosen)];
  const known = app.gpus.map((g) => h("option", { value: g.id, selected: g.id === chosen }, `${g.id}${size(g)}`));
  return [...own, ...known];
}
function modelOptions(app: App): HTMLElement[] {
  const says = (m: ModelRow): string =>
    [m.hf_id ?? "", m.params_total === null ? "" : count(m.params_total)].filter(Boolean).join(" · ");
  return app.models.filter((m) => m.not_built === null).map((m) => h("option", { value: m.id }, says(m)));
}
export function showLists(app: App): void {
  document.getElementById("gpu")?.replaceChildren(...gpuOptions(app));
  document.getElementById("models")?.replaceChildren(...modelOptions(app));
  for (const [name, words] of Object.entries(app.names))
    document.getElementById(`key-${name}-words`)?.replaceChildren(...wordOptions(words));
}

function cluster(app: App): HTMLElement {
  const [many] = splitOn(String(app.state.request.on ?? DEFAULT_ON));
  const number = h("input", {
    id: "gpu-count",
    value: many,
    inputmode: "numeric",
    autocomplete: "off",
    "data-key": "gpu-count",
  });
  const select = h("select", { id: "gpu", "data-key": "gpu" }, gpuOptions(app));
  const set = (): void => app.change({ on: `${number.value.trim().replace(/[, ]/g, "") || "1"}x${select.value}` });
  number.addEventListener("change", set);
  select.addEventListener("change", set);
  return h(
    "div",
    { class: "pair" },
    h("div", { class: "field" }, h("label", { for: "gpu-count" }, "GPUs"), number),
    h("div", { class: "field wide" }, h("label", { for: "gpu" }, "of the kind"), select),
  );
}

// A file: a config.json, a launch script, a configuration, or an earlier result.
async function readFile(app: App, name: string, text: string): Promise<void> {
  const found = await app.engine.ask<{ request: Request; not_read?: string[] }>({ call: "read", name, text });
  const say = (words: string): void => {
    const note = document.getElementById("file-note");
    if (note) note.textContent = words;
  };
  if (found.error) return say(found.error);
  const { request } = found;
  app.replace(
    "config" in request ? { ...request, on: app.state.request.on ?? DEFAULT_ON } : { ...app.state.request, ...request },
  );
  // The form is a new one now.
  if (found.not_read) say(`${name}: not read: ${found.not_read.join(", ")}`);
}

async function takeFiles(app: App, files: FileList | null): Promise<void> {
  const file = files?.[0];
  if (file && file.size < 16 * 1024 * 1024) await readFile(app, file.name, await file.text());
}

export function dropAnywhere(app: App): void {
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("drop");
  });
  window.addEventListener("dragleave", () => document.body.classList.remove("drop"));
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("drop");
    void takeFiles(app, event.dataTransfer?.files ?? null);
  });
}

// What a config.json leaves out: vocab_size=32000, ...
function assumptions(app: App): HTMLElement {
  const given = Object.entries(app.state.request.assume ?? {}).map(([key, value]) => `${key}=${value}`);
  const onchange = (event: Event): void => {
    const pairs = (event.target as HTMLInputElement).value.split(",").filter((pair) => pair.trim() !== "");
    const assume = Object.fromEntries(
      pairs.map((pair) => [pair.split("=")[0]!.trim(), pair.split("=").slice(1).join("=").trim()]),
    );
    app.change({ assume: pairs.length > 0 ? assume : null });
  };
  const attributes = { id: "assume", autocomplete: "off", spellcheck: "false", "data-key": "assume" };
  const placeholder = "vocab_size=32000, ..";
  return h(
    "div",
    { class: "field" },
    h("label", { for: "assume" }, "Where the file lacks a key"),
    h("input", { ...attributes, value: given.join(", "), placeholder, onchange }),
  );
}

function model(app: App): HTMLElement {
  const custom = app.state.request.config !== undefined;
  const input = h("input", {
    id: "model",
    list: "models",
    autocomplete: "off",
    spellcheck: "false",
    "data-key": "model",
    value: custom ? "" : String(app.state.request.model ?? ""),
    placeholder: custom ? "from config.json" : "llama3-70b",
    onchange: (event) => {
      const value = (event.target as HTMLInputElement).value.trim();
      if (value.startsWith("{")) void readFile(app, "config.json", value);
      else if (value !== "") app.change({ model: value, config: null, assume: null });
    },
    onpaste: (event) => {
      const text = (event as ClipboardEvent).clipboardData?.getData("text") ?? "";
      if (!text.trim().startsWith("{")) return;
      event.preventDefault();
      void readFile(app, "config.json", text);
    },
  });
  const file = h("input", {
    type: "file",
    id: "file",
    class: "sr",
    accept: ".json,.toml,.yaml,.yml,.py,.sh,.txt",
    onchange: (event) => void takeFiles(app, (event.target as HTMLInputElement).files),
  });
  return h(
    "div",
    { class: "field" },
    h("label", { for: "model" }, "Model"),
    input,
    h("datalist", { id: "models" }, modelOptions(app)),
    h(
      "p",
      { class: "hint" },
      custom ? "A config.json is used. " : "A name, a shape string, or ",
      h("label", { for: "file", class: "link" }, "open a config.json"),
      file,
      ": drop or paste works too, and so do launch scripts and earlier results.",
    ),
    h("p", { class: "bad", id: "file-note", role: "alert" }),
    custom ? assumptions(app) : null,
  );
}

// On a narrow page the verdict comes first: the recipe opens on demand.
function recipe(app: App, built: Key[]): HTMLElement {
  const open = recipeOpen ?? window.innerWidth > 900;
  const ontoggle = (event: Event): void => {
    recipeOpen = (event.target as HTMLDetailsElement).open;
  };
  const fields = SHOWN.map(([name, label]) => {
    const key = built.find((k) => k.name === name);
    return key ? field(app, key, label) : null;
  });
  const kept = ["model", "config", "on", "tokens"];
  const onclick = (): void =>
    app.replace(Object.fromEntries(Object.entries(app.state.request).filter(([key]) => kept.includes(key))));
  return h(
    "details",
    { class: "recipe", open, ontoggle },
    h("summary", {}, "Recipe"),
    h("div", { class: "grid" }, fields),
    h("p", { class: "hint" }, "What is left empty is chosen, and shown in grey."),
    h(
      "button",
      { type: "button", class: "quiet", id: "reset", "data-key": "reset", onclick },
      "Leave the recipe to preflop",
    ),
  );
}

function more(app: App, built: Key[]): HTMLElement {
  const shown = new Set(["tokens", ...SHOWN.map(([name]) => name)]);
  const groups = new Map<string, Key[]>();
  for (const key of built.filter((k) => !shown.has(k.name)))
    groups.set(key.group, [...(groups.get(key.group) ?? []), key]);
  const given = [...groups.values()].flat().some((k) => k.name in app.state.request);
  const ontoggle = (event: Event): void => {
    moreOpen = (event.target as HTMLDetailsElement).open;
  };
  const sets = [...groups].map(([group, keys]) => {
    const fields = keys.map((key) => field(app, key, key.name.replaceAll("_", " ")));
    return h("fieldset", {}, h("legend", {}, GROUPS[group] ?? group), h("div", { class: "grid" }, fields));
  });
  return h("details", { open: moreOpen ?? given, ontoggle }, h("summary", {}, "More of the recipe and the run"), sets);
}

export function buildForm(app: App, form: HTMLElement): void {
  const built = app.keys.filter((k) => k.not_built === null);
  const tokens = built.find((k) => k.name === "tokens");
  form.replaceChildren(
    h("h2", { class: "sr" }, "The question"),
    model(app),
    cluster(app),
    tokens ? field(app, tokens, "Tokens of the whole run") : "",
    recipe(app, built),
    more(app, built),
  );
}

// Assumed values as placeholders; which field an error speaks of.
export function showAssumed(app: App, e: Estimate | null, error: string): void {
  for (const [id, where] of [
    ["model", "MODEL:"],
    ["gpu-count", "--on:"],
  ] as const)
    document.getElementById(id)?.setAttribute("aria-invalid", String(error.startsWith(where)));
  for (const input of document.querySelectorAll<HTMLInputElement>("#ask input[name]")) {
    const given = app.state.request[input.name] !== undefined;
    const value = e?.recipe[input.name];
    const text = value === null || value === undefined ? "" : Array.isArray(value) ? value.join(",") : String(value);
    input.placeholder = text;
    const flag = `--${input.name.replaceAll("_", "-")}:`;
    input.toggleAttribute("data-given", given);
    input.setAttribute("aria-invalid", String(error.startsWith(flag)));
    const note = document.getElementById(`${input.id}-assumed`);
    if (note) note.textContent = given || text === "" ? "" : "assumed";
  }
}
