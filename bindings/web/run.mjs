// node run.mjs preflop.wasm [REQUEST]: prints the answer to a request (an argument, or stdin with one
// request a line).
import { readFileSync } from "node:fs";
import { loadPreflop } from "./wasi.mjs";

const [path, request] = process.argv.slice(2);
if (path === undefined) {
  console.error("usage: node run.mjs preflop.wasm [REQUEST]");
  process.exit(2);
}
const preflop = await loadPreflop(readFileSync(path));
const requests = request !== undefined ? [request] : readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
for (const line of requests) process.stdout.write(preflop.estimateJson(line) + "\n");
