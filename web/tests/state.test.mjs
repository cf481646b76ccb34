// A command line of the engine, read back, is the request that it came from.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "vite";

const { output } = await build({
  configFile: false,
  logLevel: "silent",
  root: new URL("..", import.meta.url).pathname,
  build: { write: false, lib: { entry: "src/state.ts", formats: ["es"] } },
}).then((made) => made[0]);
const state = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
const keys = [
  ...["tp", "recompute", "grid", "layers_per_stage"].map((name) => ({ name, value: "N" })),
  ...["sp", "compile", "dp_overlap"].map((name) => ({ name, value: "" })),
];

test("requestOf turns commandLine round", () => {
  for (const request of [
    { model: "llama3-8b", on: "64xh100-sxm", tp: "8", recompute: "full:uniform:2", layers_per_stage: "7,9,9,7" },
    { model: "gpt:layers=2,hidden=64,heads=2", on: "16xh100-sxm/4", sp: "false", compile: "true", dp_overlap: "false" },
    { model: "m", on: "my cluster.toml", grid: "it's a 'place' with \\ and \"quotes\"" },
    { config: { a: 1 }, on: "8xt4", assume: { vocab_size: "32 000", hidden_act: "'" }, tp: "2" },
  ])
    assert.deepEqual(state.requestOf(state.commandLine("estimate", request), request, keys), request);
});

test("an address keeps what the search may do", () => {
  const search = { max_memory: "60GiB", open: "precision,optimizer", allow_tight: "true" };
  const kept = { ...state.FIRST, search, clusters: "8..16xt4, 4xa100-80", compare: { model: "m", on: "1xt4" } };
  assert.deepEqual(state.decodeState(state.encodeState(kept)), kept);
  assert.deepEqual(state.decodeState(""), state.FIRST);
});
