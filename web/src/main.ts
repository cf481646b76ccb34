// The page: every change of the question is computed again, the verdict first, then pictures, then plans.
import type { App } from "./app";
import { drawCompare } from "./compare";
import { announce, byId, fill, h } from "./dom";
import { Engine, Stale } from "./engine";
import { closeExplanation, showExplanation } from "./explain";
import { copy, filesSection } from "./files";
import { buildForm, dropAnywhere, showAssumed, showLists } from "./form";
import { setGb } from "./format";
import { section } from "./num";
import { hole, pictureWidth, place } from "./pictures";
import { planControls } from "./plan_controls";
import { answers, type Found } from "./plan_search";
import { drawPlanPictures, searchPlan } from "./plans";
import { decodeState, encodeState } from "./state";
import { assumptions, memoryTable, runTable, stepTable } from "./tables";
import type { Answer, Change, Estimate, GpuRow, Key, ModelRow, Picture, Request } from "./types";
import { changesList, verdict } from "./verdict";

let formats: string[] = [];
let found: Found | null = null;
let generation = 0;

const app: App = {
  state: decodeState(location.hash),
  engine: new Engine(),
  keys: [],
  models: [],
  gpus: [],
  names: { stack: [], optimizer: [] },
  estimate: null,
  change(keys) {
    const request: Request = { ...app.state.request };
    for (const [key, value] of Object.entries(keys)) {
      if (value === null) delete request[key];
      else request[key] = value;
    }
    app.replace(request);
  },
  replace(request) {
    app.state.request = request;
    rebuildForm();
    void compute();
  },
  explain: (term) => void showExplanation(app, term),
  redraw: () => void compute(),
};

const column = (): number => pictureWidth(byId("result").clientWidth - (window.innerWidth < 600 ? 8 : 48));

function remember(): void {
  const hash = encodeState(app.state);
  if (hash !== location.hash) history.replaceState(null, "", hash);
  document.title = app.estimate
    ? `${app.estimate.model.name} on ${app.estimate.cluster.gpus} × ${app.estimate.cluster.gpu} · preflop`
    : "preflop";
}

function rebuildForm(): void {
  const key = (document.activeElement as HTMLElement | null)?.dataset.key;
  buildForm(app, byId("ask"));
  if (key) document.querySelector<HTMLElement>(`#ask [data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  showAssumed(app, app.estimate, "");
}

// The result's parts, made once; later answers fill them.
function skeleton(): void {
  if (document.getElementById("verdict-body")) return;
  byId("result").replaceChildren(
    h("div", { id: "verdict-body" }),
    h(
      "div",
      { id: "parts" },
      section("plans", "Plans", planControls(app), h("div", { id: "plans-body" })),
      section(
        "memory",
        "Memory",
        hole("memory"),
        hole("moments"),
        h("details", { id: "memory-details" }, h("summary", {}, "In numbers"), h("div", { id: "memory-body" })),
      ),
      section(
        "time",
        "Time",
        hole("mfu"),
        hole("schedule"),
        h("details", { id: "time-details" }, h("summary", {}, "In numbers"), h("div", { id: "time-body" })),
      ),
      section("run", "The run", h("div", { id: "run-body" })),
      section("compare", "Compare", h("div", { id: "compare-body" })),
      section("files", "Files", h("div", { id: "files-body" })),
      section("assumed", "Assumed", h("div", { id: "assumed-body" })),
    ),
  );
}

function showError(text: string): void {
  app.estimate = null;
  fill(
    byId("verdict-body"),
    h(
      "section",
      { class: "verdict", id: "verdict", "aria-label": "Error" },
      h("p", { class: "error", role: "alert" }, h("span", { "aria-hidden": "true" }, "✕ "), text),
    ),
  );
  byId("parts").hidden = true;
  showAssumed(app, null, text);
}

function showEstimate(e: Estimate): void {
  byId("parts").hidden = false;
  fill(byId("verdict-body"), verdict(app, e));
  fill(byId("memory-body"), memoryTable(app, e));
  fill(byId("time-body"), stepTable(app, e));
  const run = runTable(app, e);
  fill(
    byId("run-body"),
    run
      ? [hole("days"), hole("finish"), hole("interval"), h("details", {}, h("summary", {}, "In numbers"), run)]
      : h(
          "p",
          {},
          "Give the tokens of the whole run to see how long it takes as runs really go, and what it costs. ",
          h(
            "button",
            { type: "button", class: "chip", "data-key": "some-tokens", onclick: () => app.change({ tokens: "1T" }) },
            "1T tokens",
          ),
        ),
  );
  fill(byId("assumed-body"), assumptions(e));
  fill(
    byId("files-body"),
    filesSection(app, formats, () => found),
  );
  showAssumed(app, e, "");
  const says = document.querySelector(".headline")?.textContent ?? "";
  announce(`${e.model.name} on ${e.cluster.gpus} ${e.cluster.gpu}: ${says}`);
}

async function drawPictures(): Promise<void> {
  const all = await app.engine.ask<{ pictures: Picture[] }>({
    call: "pictures",
    request: app.state.request,
    width: column(),
    gb: app.state.gb,
  });
  place(all.pictures ?? [], app.explain);
}

async function drawPlans(): Promise<void> {
  if (found && answers(app, found)) {
    await drawPlanPictures(app, found, column());
    return;
  }
  found = null;
  found = await searchPlan(app, column());
}

async function compute(): Promise<void> {
  const mine = ++generation;
  setGb(app.state.gb);
  remember();
  byId("result").setAttribute("aria-busy", "true");
  app.engine.forget();
  skeleton();
  try {
    const e = await app.engine.ask<Estimate>({ call: "estimate", request: app.state.request });
    if (mine !== generation) return;
    if (e.error) {
      showError(e.error);
      return;
    }
    app.estimate = e as Answer<Estimate>;
    showEstimate(e);
    remember();
    await drawPictures();
    const { changes } = await app.engine.ask<{ changes: Change[] }>({ call: "changes", request: app.state.request });
    if (mine !== generation) return;
    const list = changesList(app, changes ?? []);
    fill(byId("changes"), list);
    await drawCompare(app);
    await drawPlans();
  } catch (why) {
    if (!(why instanceof Stale)) showError(why instanceof Error ? why.message : String(why));
  } finally {
    if (mine === generation) byId("result").removeAttribute("aria-busy");
  }
}

function tools(): void {
  const units = h(
    "button",
    { type: "button", class: "quiet", id: "units", "aria-label": `${app.state.gb ? "GB" : "GiB"}: unit of memory` },
    app.state.gb ? "GB" : "GiB",
  );
  units.addEventListener("click", () => {
    app.state.gb = !app.state.gb;
    units.textContent = app.state.gb ? "GB" : "GiB";
    units.setAttribute("aria-label", `${units.textContent}: unit of memory`);
    app.redraw();
  });
  const themes = ["auto", "light", "dark"];
  const theme = h("button", { type: "button", class: "quiet", id: "theme", "aria-label": "Colours: auto" }, "auto");
  const setTheme = (to: string): void => {
    document.documentElement.dataset.theme = to;
    theme.textContent = to;
    theme.setAttribute("aria-label", `Colours: ${to}`);
  };
  theme.addEventListener("click", () =>
    setTheme(themes[(themes.indexOf(theme.textContent ?? "auto") + 1) % themes.length]!),
  );
  setTheme("auto");
  const share = h(
    "button",
    {
      type: "button",
      class: "quiet",
      id: "share",
      onclick: () => {
        remember();
        void copy(location.href, "Address");
      },
    },
    "Share",
  );
  byId("tools").replaceChildren(units, theme, share);
}

// A change that comes meanwhile drops the question: it is asked again.
async function fillLists(): Promise<void> {
  for (let tries = 0; app.gpus.length === 0 && tries < 100; ++tries) {
    try {
      app.models = (await app.engine.ask<{ models: ModelRow[] }>({ call: "models" })).models;
      const { stacks } = await app.engine.ask<{ stacks: { name: string }[] }>({ call: "stacks" });
      const { optimizers } = await app.engine.ask<{ optimizers: { name: string }[] }>({ call: "optimizers" });
      const unique = (rows: { name: string }[]): string[] => [...new Set(rows.map((r) => r.name))];
      app.names = { stack: unique(stacks), optimizer: unique(optimizers) };
      app.gpus = (await app.engine.ask<{ gpus: GpuRow[] }>({ call: "gpus" })).gpus;
    } catch (why) {
      if (!(why instanceof Stale)) throw why;
    }
  }
  showLists(app);
}

async function start(): Promise<void> {
  tools();
  dropAnywhere(app);
  byId("ask").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeExplanation();
  });
  window.addEventListener("hashchange", () => {
    app.state = decodeState(location.hash);
    byId("result").replaceChildren();
    tools();
    rebuildForm();
    void compute();
  });
  let width = 0;
  new ResizeObserver(() => {
    if (width !== 0 && column() !== width && app.estimate) void drawPictures().catch(() => undefined);
    width = column();
  }).observe(byId("result"));
  try {
    await app.engine.load();
    app.keys = (await app.engine.ask<{ keys: Key[] }>({ call: "keys" })).keys;
    formats = (await app.engine.ask<{ formats: string[] }>({ call: "formats" })).formats;
    rebuildForm();
    // The verdict first: the lists to choose from are asked for behind it.
    const verdictShown = compute();
    await fillLists();
    await verdictShown;
  } catch (why) {
    byId("result").replaceChildren(
      h("p", { class: "error", role: "alert" }, `The engine did not start: ${String(why)}`),
    );
  }
  if ("serviceWorker" in navigator && import.meta.env.PROD && location.protocol.startsWith("http"))
    void navigator.serviceWorker.register("./sw.js").catch(() => undefined);
}

void start();
