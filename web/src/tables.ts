// The numbers behind the pictures: memory by stage, the step by what it goes to.
import type { App } from "./app";
import { h } from "./dom";
import { fixed, memoryUnit, memory, percent, seconds, stepWords, words } from "./format";
import { num } from "./num";
import type { Estimate, Stage } from "./types";

const ROWS: [keyof Stage & string, string][] = [
  ["weights", "weights"], ["gradients", "gradients"], ["optimizer", "optimizer states"], ["activations", "activations"],
  ["logits", "logits and loss"], ["buffers", "buffers of the stack"], ["transients", "transients"],
  ["allocated", "allocated by tensors"], ["reserved", "reserved by the allocator"], ["context", "outside (CUDA, NCCL)"], ["device", "on the device"],
];

export function memoryTable(app: App, e: Estimate): HTMLElement {
  const { stages, peak_stage: peak } = e.memory;
  // Neighbours that are equal are one column.
  const columns = stages.filter((s, i) => i === 0 || ROWS.some(([key]) => s[key] !== stages[i - 1]![key]) || s.layers !== stages[i - 1]!.layers || s.moment !== stages[i - 1]!.moment);
  const range = (s: Stage): string => {
    const next = columns[columns.indexOf(s) + 1]?.stage ?? stages.length;
    return next - 1 > s.stage ? `${s.stage}–${next - 1}` : `${s.stage}`;
  };
  const digits = (bytes: number): string => fixed(Number(memory(bytes, 6).split(" ")[0]), 2);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Memory of each stage" }, h("table", {},
    h("caption", {}, `Memory per GPU in ${memoryUnit()}, at the fullest moment of each stage`),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "stage"), columns.map((s) =>
      h("th", { scope: "col", class: s.stage === peak ? "peak" : null }, range(s))))),
    h("tbody", {},
      h("tr", {}, h("th", { scope: "row" }, "layers in it"), columns.map((s) => h("td", {}, String(s.layers)))),
      ROWS.map(([key, label]) => h("tr", { class: ["allocated", "device"].includes(key) ? "sum" : null },
        h("th", { scope: "row" }, label),
        columns.map((s) => h("td", {}, num(app, `memory.stages[${s.stage}].${key}`, digits(s[key] as number), `${label}, stage ${s.stage}`))))),
      h("tr", {}, h("th", { scope: "row" }, "fullest at"), columns.map((s) => h("td", { class: "words" }, words(s.moment)))))));
}

export function stepTable(app: App, e: Estimate): HTMLElement | null {
  const total = e.step.seconds;
  if (total === null) return null;
  const rows = Object.entries(e.step.breakdown).filter((row): row is [string, number] => row[1] !== null && row[1] > 0);
  rows.sort((a, b) => b[1] - a[1]);
  if (rows.length === 0) return null;
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The step by what it goes to" }, h("table", {},
    h("caption", {}, "Seconds of a step on its critical path"),
    h("tbody", {}, rows.map(([key, s]) => h("tr", {}, h("th", { scope: "row" }, stepWords(key)),
      h("td", {}, num(app, `step.breakdown.${key}`, seconds(s), stepWords(key))), h("td", {}, percent(s / total)))),
    h("tr", { class: "sum" }, h("th", { scope: "row" }, "the step"), h("td", {}, num(app, "step.seconds", seconds(total), "the step")), h("td", {}, "")))));
}

export function runTable(app: App, e: Estimate): HTMLElement | null {
  const { run } = e;
  if (typeof run.expected_seconds !== "number") return null;
  const rows: [string, string, (n: number) => string][] = [
    ["steps", "steps", (n) => n.toLocaleString("en")], ["ideal_seconds", "ideal, nothing ever failing", seconds],
    ["expected_seconds", "expected", seconds], ["p10_seconds", "P10", seconds], ["p50_seconds", "median", seconds],
    ["p90_seconds", "P90", seconds], ["interruptions", "interruptions", (n) => fixed(n, 0)],
    ["checkpoint_interval_seconds", "training between checkpoints", seconds],
    ["gpu_hours", "GPU-hours", (n) => Math.round(n).toLocaleString("en")],
    ["cost_usd", "cost, USD", (n) => Math.round(n).toLocaleString("en")], ["energy_kwh", "energy, kWh", (n) => Math.round(n).toLocaleString("en")],
    ["co2_kg", "CO2e, kg", (n) => Math.round(n).toLocaleString("en")]];
  const losses = Object.entries(run.losses ?? {}).filter((row): row is [string, number] => row[1] !== null && row[1] > 0);
  const end = run.end ? h("p", { class: "about" }, `From ${run.start}: expected to end ${run.end.expected}, P10 ${run.end.p10}, P90 ${run.end.p90}.`) : null;
  return h("div", {}, end, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The run in numbers" }, h("table", {},
    h("tbody", {}, rows.filter(([key]) => typeof run[key] === "number").map(([key, label, text]) =>
      h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, num(app, `run.${key}`, text(run[key] as number), label)))),
    losses.map(([key, s]) => h("tr", {}, h("th", { scope: "row" }, `lost to: ${words(key)}`),
      h("td", {}, num(app, `run.losses.${key}`, seconds(s), words(key)))))))));
}

export function assumptions(e: Estimate): HTMLElement {
  const all = [...e.cluster.assumed, ...e.recipe.assumed];
  return h("div", {}, h("ul", { class: "plain" }, all.map((a) => h("li", {}, a))),
    h("details", {}, h("summary", {}, `${e.sources.length} sources`), h("ul", { class: "plain" }, e.sources.map((s) => h("li", {}, s)))));
}
