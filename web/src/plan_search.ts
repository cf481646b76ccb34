// What a search of layouts is asked, on the page and on the command line, and whether it has been answered.
import type { App } from "./app";
import { commandLine, quote, requestOf, withoutLayout } from "./state";
import type { Picture, Plan, Request } from "./types";

export interface Found {
  text: string;
  plan: Plan;
  pictures: Picture[];
  asked: string;
  command: string;
}

// Limits, numerics that are open, and the clusters to look at, as the engine is told them.
export function searchWords(app: App): Record<string, unknown> {
  const { request, objective, clusters, search } = app.state;
  const further = clusters
    .split(",")
    .map((on) => on.trim())
    .filter(Boolean);
  const { allow_tight: tight, ...words } = search;
  const out: Record<string, unknown> = { objective, ...words };
  if (tight !== undefined) out.allow_tight = true;
  for (const key of ["within", "budget"]) if (request[key] !== undefined) out[key] = request[key];
  if (further.length > 0) out.on = [String(request.on), ...further];
  return out;
}

export function planCommand(app: App): string {
  const { on, objective } = searchWords(app);
  const further = Array.isArray(on) ? (on as string[]).slice(1) : [];
  const flags = Object.entries(app.state.search).map(([key, value]) => {
    const flag = `--${key.replaceAll("_", "-")}`;
    return key === "allow_tight" ? flag : `${flag} ${quote(value)}`;
  });
  return [
    commandLine("plan", withoutLayout(app.state.request)),
    ...further.map((each) => `--on ${quote(each)}`),
    ...(objective === "time" ? [] : [`--objective ${quote(String(objective))}`]),
    ...flags,
  ].join(" ");
}

const sorted = (request: Request): string => JSON.stringify(Object.entries(request).sort());
const beside = (app: App): string => JSON.stringify([app.state.objective, app.state.clusters, app.state.search]);

export const asked = (app: App): string => beside(app) + sorted(withoutLayout(app.state.request));

// Whether it still answers what the page asks. A row that is loaded gives what was left open when it was searched, as
// its batch: that is no other question. Nor is another layout then, where no row differs in what was left open.
export function answers(app: App, found: Found): boolean {
  if (found.asked === asked(app)) return true;
  if (!found.asked.startsWith(beside(app))) return false;
  const apart = found.plan.scaling.length > 1 || app.state.search.open !== undefined;
  const part = (request: Request): string => sorted(apart ? request : withoutLayout(request));
  return [...found.plan.plans, ...found.plan.scaling].some(
    ({ command }) =>
      command !== null && part(requestOf(command, app.state.request, app.keys)) === part(app.state.request),
  );
}
