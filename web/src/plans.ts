// The best layouts for the question, searched while the page is read: table, Pareto chart, reasons.
import type { App } from "./app";
import { announce, byId, fill, h } from "./dom";
import { Stale } from "./engine";
import { fixed, grouped, memory, memoryUnit, percent, seconds } from "./format";
import { picture } from "./pictures";
import { commandLine, layoutOf, withoutLayout } from "./state";
import { scrolling } from "./tables";
import type { Answer, Estimate, Picture, Plan } from "./types";

export const OBJECTIVES = ["time", "cost", "gpu-hours", "energy", "memory", "seq", "micro-batch"];
export interface Found {
  text: string;
  plan: Plan;
  pictures: Picture[];
}

const sameCluster = (a: Estimate, b: Estimate | null): boolean =>
  b !== null && a.cluster.gpus === b.cluster.gpus && a.cluster.gpu === b.cluster.gpu;
const sameLayout = (a: Estimate, b: Estimate | null): boolean =>
  b !== null && sameCluster(a, b) && JSON.stringify(layoutOf(a.recipe)) === JSON.stringify(layoutOf(b.recipe));

function load(app: App, plan: Plan, at: number): void {
  const e = plan.plans[at];
  if (!e) return;
  // The stack, too: where it was assumed, it hangs on whether a layout is given.
  app.replace({
    ...withoutLayout(app.state.request),
    ...layoutOf(e.recipe),
    stack: e.recipe.stack as string,
    on: sameCluster(e, app.estimate) ? app.state.request.on! : `${e.cluster.gpus}x${e.cluster.gpu}`,
    ...(app.state.objective === "seq" ? { seq: e.recipe.seq as number } : {}),
  });
  announce(`Plan ${at + 1} loaded`);
}

// What the search is told: the objective, limits of the run, and the clusters to look at.
export function searchWords(app: App): Record<string, unknown> {
  const { request, objective, clusters } = app.state;
  const further = clusters
    .split(",")
    .map((on) => on.trim())
    .filter(Boolean);
  const out: Record<string, unknown> = { objective };
  for (const key of ["within", "budget"]) if (request[key] !== undefined) out[key] = request[key];
  if (further.length > 0) out.on = [String(request.on), ...further];
  return out;
}

// A point of the chart: a plan of this cluster, or another cluster, whose best plan is shown then.
function select(app: App, plan: Plan, term: string): void {
  const at = Number(/\d+/.exec(term)?.[0] ?? 0);
  const other = term.startsWith("scaling") ? plan.scaling[at] : undefined;
  if (other) app.replace({ ...withoutLayout(app.state.request), on: `${other.gpus}x${other.gpu}` });
  else load(app, plan, at);
}

function row(app: App, plan: Plan, i: number, axes: string[]): HTMLElement {
  const e = plan.plans[i]!;
  const here = sameLayout(e, app.estimate);
  const gpus = plan.scaling.length > 1 ? [`${grouped(e.cluster.gpus)} × ${e.cluster.gpu}`] : [];
  const says = here ? "shown" : "load";
  const button = h(
    "button",
    {
      type: "button",
      class: "chip",
      "data-key": `plan:${i}`,
      "aria-pressed": here ? "true" : "false",
      "aria-label": `${says}: plan ${i + 1}`,
      onclick: () => load(app, plan, i),
    },
    says,
  );
  const cells = [
    ...gpus,
    ...axes.map((a) => String(e.recipe[a] ?? "–")),
    memory(e.memory.peak_device_bytes).split(" ")[0]!,
    e.step.seconds === null ? "–" : seconds(e.step.seconds),
    e.step.mfu === null ? "–" : percent(e.step.mfu),
  ];
  return h(
    "tr",
    { class: here ? "here" : null },
    h("th", { scope: "row" }, String(i + 1)),
    cells.map((cell) => h("td", {}, cell)),
    h("td", {}, button),
  );
}

function table(app: App, plan: Plan): HTMLElement {
  const all = ["tp", "pp", "vpp", "cp", "ep", "dp", "zero", "micro_batch", "recompute"];
  const varies = (a: string): boolean => plan.plans.some((e) => e.recipe[a] !== 1 && e.recipe[a] !== "none");
  const axes = all.filter((a) => ["dp", "zero", "micro_batch"].includes(a) || varies(a));
  const cluster = plan.scaling.length > 1 ? ["GPUs"] : [];
  const heads = ["#", ...cluster, ...axes.map((a) => (a === "micro_batch" ? "mb" : a)), memoryUnit(), "step", "MFU"];
  const last = h("th", { scope: "col" }, h("span", { class: "sr" }, "load"));
  return scrolling(
    "Plans",
    h(
      "table",
      { class: "plans" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => h("th", { scope: "col" }, head)),
          last,
        ),
      ),
      h(
        "tbody",
        {},
        plan.plans.map((_, i) => row(app, plan, i, axes)),
      ),
    ),
  );
}

function reasons(plan: Plan): HTMLElement {
  const s = plan.space;
  const rejected = Object.entries(s.rejected).sort((a, b) => b[1] - a[1]);
  return h(
    "details",
    {},
    h("summary", {}, "Why this one, and what became of the others"),
    h(
      "ul",
      { class: "plain" },
      plan.why.map((w) => h("li", {}, w)),
      plan.opened_would_gain.map((w) => h("li", {}, w)),
    ),
    h(
      "p",
      {},
      `Of ${grouped(s.space)} layouts ${grouped(s.priced)} were priced; ${grouped(s.pruned)} were excluded in bulk by a rule or a bound.`,
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Reasons of refusal" },
      h(
        "table",
        {},
        h("caption", {}, "Refused because"),
        h(
          "tbody",
          {},
          rejected
            .slice(0, 12)
            .map(([reason, n]) =>
              h(
                "tr",
                {},
                h("td", {}, grouped(n)),
                h("th", { scope: "row", class: "words" }, s.examples[reason] ?? reason),
              ),
            ),
        ),
      ),
    ),
  );
}

function drawPlan(app: App, found: Found): void {
  const { plan, pictures } = found;
  const words = searchWords(app),
    on = Array.isArray(words.on) ? (words.on as string[]).slice(1) : [];
  const command =
    commandLine("plan", withoutLayout(app.state.request)) +
    on.map((each) => ` --on ${each}`).join("") +
    (words.objective === "time" ? "" : ` --objective ${String(words.objective)}`);
  if (plan.plans.length === 0) {
    fill(
      byId("plans-body"),
      h("p", {}, "No layout fits."),
      plan.nearest ? h("p", {}, `Nearest: short by ${memory(-(plan.nearest.memory.margin_bytes ?? 0))}.`) : null,
      reasons(plan),
    );
    return;
  }
  const chart = pictures[0] ? picture(pictures[0], (term) => select(app, plan, term)) : null;
  fill(
    byId("plans-body"),
    table(app, plan),
    chart,
    reasons(plan),
    h("p", { class: "command" }, h("code", {}, command)),
  );
}

export async function searchPlan(app: App, width: number): Promise<Found | null> {
  const body = byId("plans-body");
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Search of layouts" });
  const looked = h("span", {}, "");
  const stop = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "data-key": "plan-cancel",
      onclick: () => {
        app.engine.cancelPlan();
        fill(
          body,
          h(
            "p",
            {},
            "The search was cancelled. ",
            h("button", { type: "button", class: "quiet", onclick: () => void app.redraw() }, "Search again"),
          ),
        );
      },
    },
    "Cancel",
  );
  fill(body, h("div", { class: "searching" }, bar, looked, stop));
  const call = {
    call: "plan-begin",
    request: withoutLayout(app.state.request),
    search: searchWords(app),
  };
  try {
    const text = await app.engine.plan(call, (at, n) => {
      bar.value = at;
      looked.textContent = ` ${grouped(n)} layouts, ${fixed(at * 100, 0)} %`;
    });
    const plan = JSON.parse(text) as Answer<Plan>;
    if (plan.error) {
      fill(body, h("p", { class: "bad" }, plan.error));
      return null;
    }
    const found: Found = { text, plan, pictures: [] };
    await drawPlanPictures(app, found, width);
    return found;
  } catch (why) {
    if (!(why instanceof Stale)) fill(body, h("p", { class: "bad" }, String(why)));
    return null;
  }
}

// A worker that was replaced meanwhile has no plan any more: the chart stays as it was drawn.
export async function drawPlanPictures(app: App, found: Found, width: number): Promise<void> {
  const drawn = await app.engine.ask<{ pictures: Picture[] }>({ call: "plan-pictures", width, gb: app.state.gb });
  if (drawn.pictures) found.pictures = drawn.pictures.filter((p) => p.height > 0);
  drawPlan(app, found);
}
