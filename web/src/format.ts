// Numbers as the command line writes them (src/base/text.cpp); tests/format.test.mjs compares the two.

export const KIB = 1024;
let decimalGb = false;
export const setGb = (on: boolean): void => {
  decimalGb = on;
};
export const memoryUnit = (): string => (decimalGb ? "GB" : "GiB");

export function memory(bytes: number, decimals = 1): string {
  return `${fixed(bytes / (decimalGb ? 1e9 : KIB ** 3), decimals)} ${memoryUnit()}`;
}

export function fixed(n: number, decimals: number): string {
  const text = n.toFixed(decimals);
  return /^-[0.]*$/.test(text) ? text.slice(1) : text;
}

export const grouped = (n: number): string =>
  Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
export const percent = (fraction: number, decimals = 1): string => `${fixed(fraction * 100, decimals)} %`;

// `digits` significant ones, without zeros at the end.
function trimmed(n: number, digits: number): string {
  return Number(n.toPrecision(digits)).toString();
}
function inUnits(n: number, units: [number, string][], digits: number, gap: string): string {
  const rounding = 1 - 0.5 * (digits === 4 ? 1e-4 : 1e-3);
  const [size, name] = units.find(([least]) => Math.abs(n) >= least * rounding) ?? units[units.length - 1]!;
  return trimmed(n / size, digits) + gap + name;
}

export function seconds(s: number): string {
  if (s === 0) return "0 s";
  const long: [number, number, string][] = [
    [365.25 * 86400, 365.25 * 86400, "years"],
    [2 * 86400, 86400, "days"],
    [3600, 3600, "h"],
    [60, 60, "min"],
  ];
  for (const [from, size, name] of long) {
    if (Math.abs(s) < from * 0.9995) continue;
    const n = s / size;
    return `${fixed(n, Math.abs(n) < 99.95 ? 1 : 0)} ${name}`;
  }
  return inUnits(
    s,
    [
      [1, "s"],
      [1e-3, "ms"],
      [1e-6, "us"],
      [1e-9, "ns"],
    ],
    3,
    " ",
  );
}

export function count(n: number): string {
  if (Math.abs(n) < 1e6 && Number.isInteger(n)) return grouped(n);
  return inUnits(
    n,
    [
      [1e15, "e15"],
      [1e12, "T"],
      [1e9, "B"],
      [1e6, "M"],
      [1, ""],
    ],
    3,
    "",
  );
}

export const dollars = (usd: number): string => `$${count(usd < 100 ? Math.round(usd * 100) / 100 : Math.round(usd))}`;

const WORDS: Record<string, string> = {
  gemm: "matrix products",
  attention: "attention",
  memory_bound: "memory-bound operators",
  logits: "output layer and loss",
  recompute: "recomputation",
  launch: "kernel launches",
  tp_comm: "tensor-parallel communication",
  cp_comm: "context-parallel communication",
  ep_comm: "expert-parallel communication",
  pp_comm: "pipeline communication",
  dp_comm: "data-parallel communication",
  offload: "offloading",
  imbalance: "imbalance",
  bubble: "pipeline bubble",
  optimizer: "optimizer step",
  other: "not broken down",
};
export const stepWords = (key: string): string => WORDS[key] ?? words(key);
export const words = (key: string): string => key.replaceAll("_", " ");
