// The page writes numbers as the command line does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "vite";
import { cli } from "./support.mjs";

const { output } = await build({
  configFile: false,
  logLevel: "silent",
  root: new URL("..", import.meta.url).pathname,
  build: { write: false, lib: { entry: "src/format.ts", formats: ["es"] } },
}).then((made) => made[0]);
const format = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);

test("seconds, memory and shares are those of the text of an estimate", () => {
  for (const flags of [
    ["llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "2"],
    ["llama3-8b", "--on", "8xh100-sxm"],
    ["llama3-70b", "--on", "2048xh100-sxm", "--tp", "8", "--tokens", "1.4T"],
  ]) {
    const text = cli("estimate", ...flags, "-v").replace(/\s+/g, " "),
      json = JSON.parse(cli("estimate", ...flags, "--json"));
    assert.ok(text.includes(`Step time ${format.seconds(json.step.seconds)} `), format.seconds(json.step.seconds));
    assert.ok(text.includes(`MFU ${format.percent(json.step.mfu)} `));
    assert.ok(text.includes(`${format.count(Math.round(json.step.tokens_per_second))} tokens/s`));
    assert.ok(text.includes(`${format.memory(Math.abs(json.memory.margin_bytes))} to spare`));
    for (const [key, s] of Object.entries(json.step.breakdown))
      if (s > 0)
        assert.ok(text.includes(`${format.stepWords(key)} ${format.seconds(s)} `), `${key}: ${format.seconds(s)}`);
    if (json.run.expected_seconds) assert.ok(text.includes(`expected ${format.seconds(json.run.expected_seconds)}, `));
  }
});

test("dollars are those of the text of a run", () => {
  for (const tokens of ["10M", "100M", "100B", "15T"]) {
    const flags = ["llama3-8b", "--on", "32xh100-sxm", "--tokens", tokens];
    const text = cli("estimate", ...flags).replace(/\s+/g, " "),
      { run } = JSON.parse(cli("estimate", ...flags, "--json"));
    assert.ok(text.includes(`= ${format.dollars(run.cost_usd)} (`), format.dollars(run.cost_usd));
  }
});

test("edges of the units", () => {
  for (const [s, text] of [
    [0, "0 s"],
    [0.0005, "500 us"],
    [59.9, "59.9 s"],
    [3599, "1.0 h"],
    [172800, "2.0 days"],
    [86400 * 400, "1.1 years"],
    [86400 * 107, "107 days"],
  ])
    assert.equal(format.seconds(s), text);
  assert.equal(format.fixed(-0.04, 1), "0.0");
  assert.equal(format.grouped(8030261248), "8,030,261,248");
  assert.equal(format.count(70553706496), "70.6B");
});
