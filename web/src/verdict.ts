// The first glance: does it fit, by how much, how fast, how long, what for.
import type { App } from "./app";
import { h } from "./dom";
import { count, dollars, grouped, memory, percent, seconds } from "./format";
import { figure, num } from "./num";
import { isOpen } from "./state";
import type { Change, Estimate, Scalar } from "./types";

const SAYS = {
  fits: ["Fits", "✓"],
  tight: ["Tight", "!"],
  no: ["Does not fit", "✕"],
  unknown: ["Not known", "?"],
} as const;

function headline(app: App, e: Estimate): HTMLElement {
  const verdict = e.memory.verdict ?? "unknown";
  const [words, sign] = SAYS[verdict];
  const margin = e.memory.margin_bytes;
  const spare = margin === null ? "" : margin < 0 ? `${memory(-margin)} short` : `${memory(margin)} to spare`;
  return h(
    "p",
    { class: "headline" },
    h("span", { class: `badge ${verdict}` }, h("span", { "aria-hidden": "true", class: "sign" }, sign), words),
    spare ? num(app, "memory.margin_bytes", spare, "margin") : null,
  );
}

// Where the fullest GPU stands against its capacity, with the band of the prediction.
function meter(app: App, e: Estimate): HTMLElement | null {
  const m = e.memory;
  if (m.capacity_bytes === null) return null;
  const most = Math.max(m.capacity_bytes, m.high_device_bytes ?? 0, m.peak_device_bytes) * 1.02;
  const at = (bytes: number): string => `${((bytes / most) * 100).toFixed(2)}%`;
  const low = m.low_device_bytes ?? m.peak_device_bytes,
    high = m.high_device_bytes ?? m.peak_device_bytes;
  const says = `${memory(m.peak_device_bytes)} of ${memory(m.capacity_bytes)} on the fullest GPU`;
  const label = `${says}; 8 of 10 runs: ${memory(low)} to ${memory(high)}`;
  return h(
    "div",
    { class: "meter" },
    h(
      "div",
      { class: "track", role: "img", "aria-label": label },
      h("div", { class: "used", style: `width:${at(m.peak_allocated_bytes)}` }),
      h("div", {
        class: "reserved",
        style: `left:${at(m.peak_allocated_bytes)};width:${at(Math.max(0, m.peak_device_bytes - m.peak_allocated_bytes))}`,
      }),
      h("div", { class: "band", style: `left:${at(low)};width:${at(high - low)}` }),
      h("div", { class: "capacity", style: `left:${at(m.capacity_bytes)}` }),
    ),
    h(
      "p",
      { class: "meter-says" },
      num(app, "memory.peak_allocated_bytes", memory(m.peak_allocated_bytes), "allocated"),
      " allocated, ",
      num(app, "memory.peak_device_bytes", memory(m.peak_device_bytes), "on the device"),
      " on the device, of ",
      num(app, "memory.capacity_bytes", memory(m.capacity_bytes), "capacity"),
      " on the fullest GPU",
    ),
  );
}

function figures(app: App, e: Estimate): HTMLElement {
  const { step, run } = e;
  const out: HTMLElement[] = [];
  if (step.seconds !== null) {
    const band =
      step.low_seconds !== null && step.high_seconds !== null
        ? `${seconds(step.low_seconds)} to ${seconds(step.high_seconds)} in 8 of 10 runs`
        : "";
    out.push(figure("A step", num(app, "step.seconds", seconds(step.seconds), "step"), band));
  }
  if (step.mfu !== null)
    out.push(figure("MFU", num(app, "step.mfu", percent(step.mfu), "MFU"), `convention ${step.mfu_convention}`));
  if (step.tokens_per_second !== null)
    out.push(
      figure(
        "Tokens/s",
        num(app, "step.tokens_per_second", count(Math.round(step.tokens_per_second)), "tokens per second"),
        step.tokens_per_second_per_gpu === null ? "" : `${count(Math.round(step.tokens_per_second_per_gpu))} per GPU`,
      ),
    );
  const { p50_seconds: median, p10_seconds: p10, p90_seconds: p90, cost_usd: cost, gpu_hours: hours } = run;
  if (typeof median === "number")
    out.push(
      figure(
        "The run",
        num(app, "run.p50_seconds", seconds(median), "median run"),
        typeof p10 === "number" && typeof p90 === "number" ? `P10–P90 ${seconds(p10)} to ${seconds(p90)}` : "",
      ),
    );
  if (typeof cost === "number")
    out.push(
      figure(
        "Cost",
        num(app, "run.cost_usd", dollars(cost), "cost"),
        typeof hours === "number" ? `${grouped(hours)} GPU-hours` : "",
      ),
    );
  return h("dl", { class: "figures" }, out);
}

export function layoutWords(e: Estimate): string {
  const r = e.recipe;
  const sizes = ["tp", "pp", "vpp", "cp", "ep", "etp", "dp"].filter(
    (k) => k === "dp" || (typeof r[k] === "number" && (r[k] as number) > 1),
  );
  return `${sizes.map((k) => `${k} ${r[k]}`).join(" × ")} · zero ${r.zero} · micro-batch ${r.micro_batch} of ${grouped(Number(r.global_batch))} sequences · recompute ${r.recompute}`;
}

// "--tp 4 --pp 2" or "recompute=full" as keys of a request.
export function keysOf(change: string): Record<string, Scalar> {
  const out: Record<string, Scalar> = {};
  const flags = [...change.matchAll(/--([a-z-]+)[ =](\S+)/g)];
  for (const [, flag, value] of flags) out[flag!.replaceAll("-", "_")] = value!;
  if (flags.length === 0 && change.includes("="))
    out[change.slice(0, change.indexOf("="))] = change.slice(change.indexOf("=") + 1);
  return out;
}

const apply = (app: App, change: string): HTMLElement =>
  h(
    "button",
    { type: "button", class: "chip", "data-key": `apply:${change}`, onclick: () => app.change(keysOf(change)) },
    change,
  );

function wayOut(app: App, e: Estimate): HTMLElement | null {
  if (e.memory.verdict !== "no") return null;
  if (e.memory.way_out.length === 0)
    return h("p", { class: "wayout" }, "No single change makes it fit: more GPUs, larger ones, or a shorter sequence.");
  return h(
    "div",
    { class: "wayout" },
    h("h3", {}, "The way out"),
    h(
      "ul",
      {},
      e.memory.way_out.map((w) =>
        h(
          "li",
          {},
          apply(app, w.change),
          ` frees ${w.freed_bytes === null ? "?" : memory(w.freed_bytes)}`,
          w.seconds_factor === null ? "" : `, a step takes ${w.seconds_factor.toFixed(2)} times as long`,
        ),
      ),
    ),
  );
}

export function changesList(app: App, changes: Change[]): HTMLElement | null {
  if (changes.length === 0) return null;
  const words = (c: Change): string => {
    const [says] = SAYS[c.verdict as keyof typeof SAYS] ?? SAYS.unknown;
    return `: ${says.toLowerCase()}, ${memory(Math.abs(c.margin_bytes))} ${c.margin_bytes < 0 ? "short" : "to spare"}`;
  };
  return h(
    "div",
    { class: "changes" },
    h("h3", {}, "What nobody chose, and would change the verdict"),
    h(
      "ul",
      {},
      changes.map((c) => h("li", {}, apply(app, c.choice), words(c))),
    ),
  );
}

export function verdict(app: App, e: Estimate): HTMLElement {
  const c = e.cluster;
  const where = `${grouped(c.gpus)} × ${c.gpu}${c.platform ? ` (${c.platform}, ${grouped(c.nodes)} ${c.nodes === 1 ? "node" : "nodes"})` : ""}`;
  return h(
    "section",
    { class: "verdict", "aria-label": "Verdict", id: "verdict" },
    h(
      "p",
      { class: "what" },
      h("strong", {}, e.model.name),
      ` · `,
      num(app, "model.params_total", `${count(e.model.params_total)} parameters`),
      ` · ${where} · ${e.recipe.stack}`,
    ),
    headline(app, e),
    meter(app, e),
    figures(app, e),
    h(
      "p",
      { class: "layout" },
      layoutWords(e),
      isOpen(app.state.request) ? h("span", { class: "tag" }, "the best plan") : null,
    ),
    wayOut(app, e),
    h("div", { id: "changes" }),
    e.warnings.length
      ? h(
          "ul",
          { class: "warnings" },
          e.warnings.map((w) => h("li", {}, w)),
        )
      : null,
  );
}
