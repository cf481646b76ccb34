// The best layouts for the question, searched while the page is read: table, Pareto chart, reasons.
import type { App } from "./app";
import { byId, fill, h } from "./dom";
import { Stale } from "./engine";
import { commandToCopy } from "./files";
import { fixed, grouped } from "./format";
import { picture } from "./pictures";
import { clustersTable, load, planAgain, plansTable } from "./plan_rows";
import { asked, planCommand, searchWords, type Found } from "./plan_search";
import { withoutLayout } from "./state";
import type { Answer, Picture, Plan } from "./types";
import { layoutWords } from "./verdict";

// A point of the chart: a plan, or another cluster, whose best plan is shown then.
function select(app: App, plan: Plan, term: string): void {
  const at = Number(/\d+/.exec(term)?.[0] ?? 0);
  if (term.startsWith("scaling")) load(app, plan.scaling[at]?.command, "Best of the cluster");
  else load(app, plan.plans[at]?.command, `Plan ${at + 1}`);
}

// Sentences of the engine, one below the other.
const sentences = (kind: string, all: string[]): HTMLElement | null =>
  all.length === 0
    ? null
    : h(
        "ul",
        { class: `plain ${kind}` },
        all.map((each) => h("li", {}, each)),
      );

function reasons(plan: Plan): HTMLElement {
  const s = plan.space;
  const rejected = Object.entries(s.rejected).sort((a, b) => b[1] - a[1]);
  return h(
    "details",
    {},
    h("summary", {}, "Why this one, and what became of the others"),
    sentences("why", plan.why),
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

function nothingFound(plan: Plan): HTMLElement {
  const near = plan.nearest;
  if (near === null) return h("p", {}, "No plan found.");
  const where = `${grouped(near.cluster.gpus)} × ${near.cluster.gpu}`;
  return h("p", {}, `No plan found. Nearest on ${where}: ${layoutWords(near)}; ${plan.nearest_why ?? ""}.`);
}

function drawPlan(app: App, found: Found): void {
  const { plan, pictures } = found;
  const some = plan.plans.length > 0;
  const chart = some && pictures[0] ? picture(pictures[0], (term) => select(app, plan, term)) : null;
  fill(
    byId("plans-body"),
    some ? [plansTable(app, plan), planAgain(app, plan)] : nothingFound(plan),
    sentences("notes", plan.notes),
    chart,
    some ? clustersTable(app, plan) : null,
    reasons(plan),
    sentences("gains", [...plan.switches_would_gain, ...plan.opened_would_gain]),
    h("h3", {}, "All of this on the command line"),
    commandToCopy(found.command, "of this plan", "plan"),
  );
}

function cancelled(app: App): void {
  app.engine.cancelPlan();
  const again = h("button", { type: "button", class: "quiet", onclick: () => void app.redraw() }, "Search again");
  fill(byId("plans-body"), h("p", {}, "The search was cancelled. ", again));
}

export async function searchPlan(app: App, width: number): Promise<Found | null> {
  const body = byId("plans-body");
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Search of layouts" });
  const looked = h("span", {}, "");
  const onclick = (): void => cancelled(app);
  const stop = h("button", { type: "button", class: "quiet", "data-key": "plan-cancel", onclick }, "Cancel");
  fill(body, h("div", { class: "searching" }, bar, looked, stop));
  const call = {
    call: "plan-begin",
    request: withoutLayout(app.state.request),
    search: searchWords(app),
  };
  const question = { asked: asked(app), command: planCommand(app) };
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
    const found: Found = { text, plan, pictures: [], ...question };
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
