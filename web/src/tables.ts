// The numbers behind the pictures: memory by stage, the step by what it goes to.
import type { App } from "./app";
import { h } from "./dom";
import { fixed, memoryUnit, memory, percent, seconds, stepWords, words } from "./format";
import { num } from "./num";
import type { Estimate, Stage } from "./types";

const ROWS: [keyof Stage & string, string][] = [
  ["weights", "weights"],
  ["gradients", "gradients"],
  ["optimizer", "optimizer states"],
  ["activations", "activations"],
  ["logits", "logits and loss"],
  ["buffers", "buffers of the stack"],
  ["transients", "transients"],
  ["allocated", "allocated by tensors"],
  ["reserved", "reserved by the allocator"],
  ["context", "outside (CUDA, NCCL)"],
  ["device", "on the device"],
];

// A table that scrolls by itself where it is wide, by keyboard, too.
export const scrolling = (label: string, table: HTMLElement): HTMLElement =>
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
const row = (label: string, cells: Parameters<typeof h>[2], kind: string | null = null): HTMLElement =>
  h("tr", { class: kind }, h("th", { scope: "row" }, label), cells);

// Neighbours that are equal are one column.
function columnsOf(stages: Stage[]): Stage[] {
  const same = (a: Stage, b: Stage): boolean =>
    ROWS.every(([key]) => a[key] === b[key]) && a.layers === b.layers && a.moment === b.moment;
  return stages.filter((s, i) => i === 0 || !same(s, stages[i - 1]!));
}

export function memoryTable(app: App, e: Estimate): HTMLElement {
  const { stages, peak_stage: peak } = e.memory;
  const columns = columnsOf(stages);
  const range = (s: Stage): string => {
    const next = columns[columns.indexOf(s) + 1]?.stage ?? stages.length;
    return next - 1 > s.stage ? `${s.stage}–${next - 1}` : `${s.stage}`;
  };
  const number = (bytes: number): string => memory(bytes, 2).split(" ")[0]!;
  const cells = (key: keyof Stage & string, label: string): HTMLElement[] =>
    columns.map((s) => {
      const term = `memory.stages[${s.stage}].${key}`;
      return h("td", {}, num(app, term, number(s[key] as number), `${label}, stage ${s.stage}`));
    });
  const heads = columns.map((s) => h("th", { scope: "col", class: s.stage === peak ? "peak" : null }, range(s)));
  const body = [
    row(
      "layers in it",
      columns.map((s) => h("td", {}, String(s.layers))),
    ),
    ...ROWS.map(([key, label]) => row(label, cells(key, label), ["allocated", "device"].includes(key) ? "sum" : null)),
    row(
      "fullest at",
      columns.map((s) => h("td", { class: "words" }, words(s.moment))),
    ),
  ];
  const caption = `Memory per GPU in ${memoryUnit()}, at the fullest moment of each stage`;
  return scrolling(
    "Memory of each stage",
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "stage"), heads)),
      h("tbody", {}, body),
    ),
  );
}

export function stepTable(app: App, e: Estimate): HTMLElement | null {
  const total = e.step.seconds;
  if (total === null) return null;
  const rows = Object.entries(e.step.breakdown).filter((row): row is [string, number] => row[1] !== null && row[1] > 0);
  rows.sort((a, b) => b[1] - a[1]);
  if (rows.length === 0) return null;
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "The step by what it goes to" },
    h(
      "table",
      {},
      h("caption", {}, "Seconds of a step on its critical path"),
      h(
        "tbody",
        {},
        rows.map(([key, s]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, stepWords(key)),
            h("td", {}, num(app, `step.breakdown.${key}`, seconds(s), stepWords(key))),
            h("td", {}, percent(s / total)),
          ),
        ),
        h(
          "tr",
          { class: "sum" },
          h("th", { scope: "row" }, "the step"),
          h("td", {}, num(app, "step.seconds", seconds(total), "the step")),
          h("td", {}, ""),
        ),
      ),
    ),
  );
}

const whole = (n: number): string => Math.round(n).toLocaleString("en");
const RUN_ROWS: [string, string, (n: number) => string][] = [
  ["steps", "steps", whole],
  ["ideal_seconds", "ideal, nothing ever failing", seconds],
  ["expected_seconds", "expected", seconds],
  ["p10_seconds", "P10", seconds],
  ["p50_seconds", "median", seconds],
  ["p90_seconds", "P90", seconds],
  ["interruptions", "interruptions", (n) => fixed(n, 0)],
  ["checkpoint_interval_seconds", "training between checkpoints", seconds],
  ["gpu_hours", "GPU-hours", whole],
  ["cost_usd", "cost, USD", whole],
  ["energy_kwh", "energy, kWh", whole],
  ["co2_kg", "CO2e, kg", whole],
];

export function runTable(app: App, e: Estimate): HTMLElement | null {
  const { run } = e;
  if (typeof run.expected_seconds !== "number") return null;
  const losses = Object.entries(run.losses ?? {}).filter(
    (row): row is [string, number] => row[1] !== null && row[1] > 0,
  );
  const end = run.end
    ? h(
        "p",
        { class: "about" },
        `From ${run.start}: expected to end ${run.end.expected}, P10 ${run.end.p10}, P90 ${run.end.p90}.`,
      )
    : null;
  return h(
    "div",
    {},
    end,
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "The run in numbers" },
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          RUN_ROWS.filter(([key]) => typeof run[key] === "number").map(([key, label, text]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, label),
              h("td", {}, num(app, `run.${key}`, text(run[key] as number), label)),
            ),
          ),
          losses.map(([key, s]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, `lost to: ${words(key)}`),
              h("td", {}, num(app, `run.losses.${key}`, seconds(s), words(key))),
            ),
          ),
        ),
      ),
    ),
  );
}

export function assumptions(e: Estimate): HTMLElement {
  const all = [...e.cluster.assumed, ...e.recipe.assumed];
  return h(
    "div",
    {},
    h(
      "ul",
      { class: "plain" },
      all.map((a) => h("li", {}, a)),
    ),
    h(
      "details",
      {},
      h("summary", {}, `${e.sources.length} sources`),
      h(
        "ul",
        { class: "plain" },
        e.sources.map((s) => h("li", {}, s)),
      ),
    ),
  );
}
