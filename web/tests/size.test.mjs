// What a first visit downloads, compressed as servers and browsers do it (gzip, level 9).
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { test } from "node:test";
import path from "node:path";
import { DIST } from "./support.mjs";

const files = readdirSync(DIST, { recursive: true, withFileTypes: true })
  .filter((f) => f.isFile())
  .map((f) => path.join(f.parentPath ?? f.path, f.name));

test("the engine is below 700 KB, all of the page below 1.5 MB", () => {
  const engine = readFileSync(path.join(DIST, "engine.bin"));
  assert.equal(gunzipSync(engine).subarray(0, 4).toString("latin1"), "\0asm");
  assert.ok(engine.length < 700_000, `engine: ${engine.length} bytes`);
  const total = files
    .filter((f) => !f.endsWith("preflop.html"))
    .reduce((sum, f) => sum + (f.endsWith(".bin") ? engine.length : gzipSync(readFileSync(f), { level: 9 }).length), 0);
  assert.ok(total < 1_500_000, `total: ${total} bytes`);
  console.log(`engine ${engine.length} bytes, total ${total} bytes, gzip`);
});

test("addresses are relative and nothing comes from elsewhere", () => {
  for (const file of files.filter((f) => /\.(html|css|js)$/.test(f))) {
    const text = readFileSync(file, "utf8");
    assert.doesNotMatch(text, /(src|href)="\/[^"]/, file);
    assert.doesNotMatch(text, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/, file);
  }
});
