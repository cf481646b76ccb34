// The parts of the engine's JSON that the page reads. docs of the keys: preflop.estimate/1 and preflop.plan/1.

export type Scalar = string | number | boolean | null;
export type Request = Record<string, Scalar | Record<string, unknown>>;

export interface Stage {
  stage: number;
  layers: number;
  moment: string;
  moments: Record<string, number | null>;
  weights: number;
  gradients: number;
  optimizer: number;
  activations: number;
  logits: number;
  buffers: number;
  transients: number;
  allocated: number;
  reserved: number;
  context: number;
  device: number;
}
export interface Estimate {
  schema: string;
  model: { name: string; params_total: number; params_active: number };
  cluster: {
    gpu: string;
    gpus: number;
    gpus_per_node: number;
    nodes: number;
    platform: string | null;
    assumed: string[];
  };
  recipe: Record<string, Scalar | number[] | string[]> & { assumed: string[] };
  memory: {
    verdict: "fits" | "tight" | "no" | null;
    margin_bytes: number | null;
    capacity_bytes: number | null;
    peak_allocated_bytes: number;
    peak_device_bytes: number;
    peak_stage: number;
    peak_moment: string;
    low_device_bytes: number | null;
    high_device_bytes: number | null;
    checkpoint_bytes: number | null;
    stages: Stage[];
    way_out: { change: string; freed_bytes: number | null; seconds_factor: number | null }[];
  };
  step: {
    seconds: number | null;
    low_seconds: number | null;
    high_seconds: number | null;
    tokens_per_second: number | null;
    tokens_per_second_per_gpu: number | null;
    mfu: number | null;
    mfu_convention: string | null;
    hfu: number | null;
    breakdown: Record<string, number | null>;
  };
  run: Record<string, number | null> & {
    losses: Record<string, number | null> | null;
    start: string | null;
    end: Record<string, string> | null;
  };
  sources: string[];
  warnings: string[];
}
// `command`: the command line that gives the row again; null where no search made it.
export interface Point {
  command: string | null;
  gpu: string;
  gpus: number;
  step_seconds: number | null;
  mfu: number | null;
  p50_seconds: number | null;
  gpu_hours: number | null;
  cost_usd: number | null;
  recipe: Record<string, Scalar>;
}
export interface Plan {
  plans: (Estimate & { command: string | null })[];
  nearest: Estimate | null;
  nearest_why: string | null;
  why: string[];
  notes: string[];
  opened_would_gain: string[];
  switches_would_gain: string[];
  scaling: Point[];
  pareto: Point[];
  space: {
    space: number;
    pruned: number;
    checked: number;
    priced: number;
    rejected: Record<string, number>;
    examples: Record<string, string>;
  };
}
export interface Picture {
  name: string;
  title: string;
  width: number;
  height: number;
  svg: string;
}
export interface Change {
  choice: string;
  verdict: string;
  margin_bytes: number;
}
export interface Key {
  name: string;
  value: string;
  group: string;
  help: string;
  not_built: string | null;
}
export interface ModelRow {
  id: string;
  hf_id: string | null;
  params_total: number | null;
  not_built: string | null;
}
export interface GpuRow {
  id: string;
  data: Record<string, { value: number | null }>;
}
export interface Comparison {
  a: string;
  b: string;
  lines: { path: string; a: string; b: string; ratio: number | null }[];
}
export interface Explained {
  head: string;
  path: string;
  about: string;
  lines: { indent: number; text: string }[];
}
export type Answer<T> = T & { error?: string };
