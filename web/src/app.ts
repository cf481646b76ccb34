// What the parts of the page share: the question, the engine, and what may be done with both.
import type { Engine } from "./engine";
import type { State } from "./state";
import type { Estimate, GpuRow, Key, ModelRow, Request, Scalar } from "./types";

export interface App {
  state: State;
  engine: Engine;
  keys: Key[];
  models: ModelRow[];
  gpus: GpuRow[];
  names: Record<string, string[]>; // of the catalogues that keys of the request take names of
  estimate: Estimate | null;
  // Sets keys of the request, null takes one away; everything is computed again.
  change(keys: Record<string, Scalar | Record<string, unknown>>): void;
  replace(request: Request): void;
  explain(term: string): void;
  redraw(): void; // another unit, width or objective
}
