// What the page shows, and its address: everything is in the URL's fragment, which no server sees.
import type { Key, Request } from "./types";

export interface State {
  request: Request;
  gb: boolean;
  objective: string;
  clusters: string; // further ones to plan for: "32..256xh100-sxm, 64xb200"
  search: Record<string, string>; // max_memory, open, top, allow_tight: as the flags of a plan
  compare: Request | null; // the kept one
}

export const FIRST: State = {
  request: { model: "llama3-70b", on: "64xh100-sxm" },
  gb: false,
  objective: "time",
  clusters: "",
  search: {},
  compare: null,
};

// Keys of the layout: what a plan chooses.
export const LAYOUT = [
  "tp",
  "pp",
  "vpp",
  "cp",
  "ep",
  "etp",
  "dp",
  "sp",
  "zero",
  "hsdp",
  "schedule",
  "layers_per_stage",
  "micro_batch",
  "recompute",
  "loss",
];

function encodeRequest(request: Request): string {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(request))
    out.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  return out.toString();
}

function decodeRequest(text: string): Request {
  const out: Request = {};
  for (const [key, value] of new URLSearchParams(text)) {
    if (key !== "config" && key !== "assume") {
      out[key] = value;
      continue;
    }
    try {
      out[key] = JSON.parse(value) as Record<string, unknown>;
    } catch {
      // A broken link shows what is left of it.
    }
  }
  return out;
}

// #model=llama3-70b&on=64xh100-sxm&tp=8;gb;compare=...: parts by ";", which URLSearchParams never writes.
export function encodeState(state: State): string {
  const parts = [encodeRequest(state.request)];
  if (state.gb) parts.push("gb");
  if (state.objective !== "time") parts.push(`objective=${state.objective}`);
  if (state.clusters) parts.push(`clusters=${encodeURIComponent(state.clusters)}`);
  if (Object.keys(state.search).length > 0)
    parts.push(`search=${encodeURIComponent(new URLSearchParams(state.search).toString())}`);
  if (state.compare) parts.push(`compare=${encodeURIComponent(encodeRequest(state.compare))}`);
  return `#${parts.join(";")}`;
}

export function decodeState(hash: string): State {
  const [request, ...rest] = hash.replace(/^#/, "").split(";");
  if (!request) return { ...FIRST, request: { ...FIRST.request }, search: {} };
  const state: State = { ...FIRST, request: decodeRequest(request), search: {} };
  for (const part of rest) {
    if (part === "gb") state.gb = true;
    if (part.startsWith("objective=")) state.objective = part.slice("objective=".length);
    if (part.startsWith("clusters=")) state.clusters = decodeURIComponent(part.slice("clusters=".length));
    if (part.startsWith("search="))
      state.search = Object.fromEntries(new URLSearchParams(decodeURIComponent(part.slice("search=".length))));
    if (part.startsWith("compare=")) state.compare = decodeRequest(decodeURIComponent(part.slice("compare=".length)));
  }
  return state;
}

export function isOpen(request: Request): boolean {
  return !["tp", "pp", "cp", "ep", "zero"].some((key) => key in request);
}

export function withoutLayout(request: Request): Request {
  return Object.fromEntries(Object.entries(request).filter(([key]) => !LAYOUT.includes(key)));
}

// The same on the command line.
export function commandLine(command: string, request: Request): string {
  const model = request.config ? "config.json" : quote(String(request.model ?? "MODEL"));
  const flags = Object.entries(request)
    .filter(([key]) => !["model", "on", "config", "assume"].includes(key))
    .map(([key, value]) => {
      const flag = key.replaceAll("_", "-");
      if (value === true || value === "true") return `--${flag}`;
      return value === false || value === "false" ? `--no-${flag}` : `--${flag} ${quote(String(value))}`;
    });
  const assumed = Object.entries(request.assume ?? {}).map(([key, value]) => `--assume ${quote(`${key}=${value}`)}`);
  return [`preflop ${command}`, model, `--on ${quote(String(request.on ?? ""))}`, ...flags, ...assumed].join(" ");
}

// The engine's command line of a row as a request, for the same model: what commandLine writes, turned round.
export function requestOf(command: string, asked: Request, keys: Key[]): Request {
  const out: Request = {};
  for (const key of ["model", "config", "assume"]) if (asked[key] !== undefined) out[key] = asked[key];
  const words = [...command.matchAll(/(?:[^\s'\\]|\\.|'[^']*')+/g)].map(([word]) =>
    word.replace(/'([^']*)'|\\(.)/g, (_, quoted?: string, escaped?: string) => quoted ?? escaped ?? ""),
  );
  const takesValue = (name: string): boolean => name === "on" || keys.some((k) => k.name === name && k.value !== "");
  for (let i = 3; i < words.length; ++i) {
    const name = words[i]!.slice(2).replaceAll("-", "_");
    if (name === "assume") ++i;
    else if (takesValue(name)) out[name] = words[++i]!;
    else if (name.startsWith("no_")) out[name.slice(3)] = "false";
    else out[name] = "true";
  }
  return out;
}
export const quote = (text: string): string =>
  /^[\w.,:=@%+/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
