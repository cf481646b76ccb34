// The rows of a plan: the best layouts, and the best of each cluster. A row is loaded by the command that gives it
// again, so that the page then shows what the row says.
import type { App } from "./app";
import { announce, h } from "./dom";
import { commandToCopy } from "./files";
import { count, dollars, grouped, memory, memoryUnit, percent, seconds } from "./format";
import { requestOf } from "./state";
import { scrolling } from "./tables";
import type { Estimate, Plan, Point } from "./types";

const bare = (part: Record<string, unknown>): string => JSON.stringify({ ...part, assumed: null });
const same = (a: Estimate, b: Estimate | null): boolean =>
  b !== null && bare(a.cluster) === bare(b.cluster) && bare(a.recipe) === bare(b.recipe);

export function load(app: App, command: string | null | undefined, name: string): void {
  if (!command) return;
  app.replace(requestOf(command, app.state.request, app.keys));
  announce(`${name} loaded`);
}

// The cluster as it was asked about, which tells machines of the same GPU apart: "16 × aws-p5".
function clusterOf(app: App, row: { command: string | null; gpus: number; gpu: string }): string {
  const on = row.command === null ? "" : String(requestOf(row.command, {}, app.keys).on);
  return `${grouped(row.gpus)} × ${/^\d+x(.+)$/.exec(on)?.[1] ?? row.gpu}`;
}

// Where a plan stands that is what the page shows; -1: it shows another layout.
const shownAt = (app: App, plan: Plan): number => plan.plans.findIndex((e) => same(e, app.estimate));

function loadButton(app: App, command: string | null, here: boolean, name: string, key: string): HTMLElement {
  const says = here ? "shown" : "load";
  const attributes = {
    type: "button",
    class: "chip",
    "data-key": key,
    "aria-pressed": here ? "true" : "false",
    "aria-label": `${says}: ${name}`,
    onclick: () => load(app, command, name[0]!.toUpperCase() + name.slice(1)),
  };
  return h("button", attributes, says);
}

interface Column {
  head: string;
  cell: (e: Plan["plans"][number]) => string;
}

function columns(app: App, plan: Plan): Column[] {
  const differs = (of: (e: Estimate) => unknown): boolean => new Set(plan.plans.map(of)).size > 1;
  const numerics = (e: Estimate): string => `${e.recipe.precision} ${e.recipe.optimizer}`;
  const axes = ["tp", "pp", "vpp", "cp", "ep", "etp", "dp", "zero", "micro_batch", "recompute"].filter(
    (a) =>
      ["dp", "zero", "micro_batch"].includes(a) || plan.plans.some((e) => e.recipe[a] !== 1 && e.recipe[a] !== "none"),
  );
  const all: (Column | false)[] = [
    plan.scaling.length > 1 && {
      head: "GPUs",
      cell: (e) => clusterOf(app, { command: e.command, gpus: e.cluster.gpus, gpu: e.cluster.gpu }),
    },
    differs(numerics) && { head: "numerics", cell: numerics },
    ...axes.map((a) => ({ head: a === "micro_batch" ? "mb" : a, cell: (e: Estimate) => String(e.recipe[a] ?? "–") })),
    differs((e) => e.recipe.global_batch) && { head: "batch", cell: (e) => grouped(Number(e.recipe.global_batch)) },
    { head: memoryUnit(), cell: (e) => memory(e.memory.peak_device_bytes).split(" ")[0]! },
    { head: "step", cell: (e) => (e.step.seconds === null ? "–" : seconds(e.step.seconds)) },
    { head: "MFU", cell: (e) => (e.step.mfu === null ? "–" : percent(e.step.mfu)) },
  ];
  return all.filter((c) => c !== false);
}

const head = (heads: string[]): HTMLElement =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      heads.map((each) => h("th", { scope: "col" }, each)),
      h("th", { scope: "col" }, h("span", { class: "sr" }, "load")),
    ),
  );
const row = (here: boolean, name: string, cells: string[], button: HTMLElement): HTMLElement =>
  h(
    "tr",
    { class: here ? "here" : null },
    h("th", { scope: "row" }, name),
    cells.map((cell) => h("td", {}, cell)),
    h("td", {}, button),
  );

export function plansTable(app: App, plan: Plan): HTMLElement {
  const shown = columns(app, plan);
  const at = shownAt(app, plan);
  const rows = plan.plans.map((e, i) => {
    const button = loadButton(app, e.command, i === at, `plan ${i + 1}`, `plan:${i}`);
    const cells = shown.map((c) => c.cell(e));
    return row(i === at, String(i + 1), cells, button);
  });
  const heads = ["#", ...shown.map((c) => c.head)];
  return scrolling("Plans", h("table", { class: "plans" }, head(heads), h("tbody", {}, rows)));
}

// The command of the plan that is shown, else of the first.
export function planAgain(app: App, plan: Plan): HTMLElement | null {
  const i = Math.max(0, shownAt(app, plan));
  const command = plan.plans[i]?.command;
  if (!command) return null;
  return h(
    "div",
    { class: "again" },
    h("h3", {}, i > 0 ? `#${i + 1} again:` : "The first again:"),
    commandToCopy(command, i > 0 ? `of plan ${i + 1}` : "of the first plan", "row"),
  );
}

function sizesOf(p: Point): string {
  const sizes = ["tp", "pp", "dp", "ep"].filter((key) => Number(p.recipe[key]) > 1);
  return sizes.map((key) => `${key} ${p.recipe[key]}`).join(" ") || "one GPU";
}

const CLUSTER_COLUMNS: [string, (p: Point) => string | null][] = [
  ["best layout", sizesOf],
  ["step", (p) => (p.step_seconds === null ? null : seconds(p.step_seconds))],
  ["MFU", (p) => (p.mfu === null ? null : percent(p.mfu))],
  ["run", (p) => (p.p50_seconds === null ? null : seconds(p.p50_seconds))],
  ["GPU-hours", (p) => (p.gpu_hours === null ? null : count(Math.round(p.gpu_hours)))],
  ["cost", (p) => (p.cost_usd === null ? null : dollars(p.cost_usd))],
];

// The best of each cluster, and the command of that which is shown.
export function clustersTable(app: App, plan: Plan): HTMLElement | null {
  if (plan.scaling.length < 2) return null;
  const shown = CLUSTER_COLUMNS.filter(([, cell]) => plan.scaling.some((p) => cell(p) !== null));
  const front = new Set(plan.pareto.map((p) => p.command));
  const loaded = plan.plans[shownAt(app, plan)]?.command ?? null;
  const asked = JSON.stringify(Object.entries(app.state.request).sort());
  const here = ({ command }: Point): boolean =>
    command !== null &&
    (command === loaded ||
      JSON.stringify(Object.entries(requestOf(command, app.state.request, app.keys)).sort()) === asked);
  const rows = plan.scaling.map((p, i) => {
    const on = clusterOf(app, p);
    const cells = [...shown.map(([, cell]) => cell(p) ?? "–"), front.has(p.command) ? "*" : ""];
    return row(here(p), on, cells, loadButton(app, p.command, here(p), `best of ${on}`, `cluster:${i}`));
  });
  const key = front.size > 0 ? " (* nothing faster with no more GPUs and money)" : "";
  const chosen = plan.scaling.find(here);
  return h(
    "div",
    { class: "clusters" },
    h("h3", {}, `Best of each cluster${key}`),
    scrolling(
      "Best of each cluster",
      h(
        "table",
        { class: "plans" },
        head(["GPUs", ...shown.map(([title]) => title), front.size > 0 ? "*" : ""]),
        h("tbody", {}, rows),
      ),
    ),
    chosen?.command
      ? [
          h("h3", {}, `The best of ${clusterOf(app, chosen)} again:`),
          commandToCopy(chosen.command, `of ${clusterOf(app, chosen)}`, "cluster"),
        ]
      : null,
  );
}
