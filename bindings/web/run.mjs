// node run.mjs preflop.wasm [CALL]: prints the answer to a call (an argument, or stdin with one a line, all of one
// session).
import { readFileSync } from "node:fs";
import { loadPreflop } from "./wasi.mjs";

const [path, call] = process.argv.slice(2);
if (path === undefined) {
  console.error("usage: node run.mjs preflop.wasm [CALL]");
  process.exit(2);
}
const preflop = await loadPreflop(readFileSync(path));
const calls = call !== undefined ? [call] : readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
for (const line of calls) process.stdout.write(preflop.answer(line) + "\n");
