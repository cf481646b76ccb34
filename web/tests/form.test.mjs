// The form has every key of the command line.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, cli, command, launch, planned, serve, settled } from "./support.mjs";

let server, browser;
before(async () => {
  server = await serve();
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.close();
});

test("every key of the command line is in the form, with the words that it takes", async () => {
  const help = cli("estimate", "--help");
  const { page, context } = await ask(browser, server.url, ["llama3-8b", "--on", "8xh100-sxm"]);
  // Asked by files, by the fields of the cluster and of a config.json, or of the terminal.
  const files = ["assume", "data-dir", "from", "on", "recipe"];
  const terminal = ["check", "json", "output", "quiet", "timeline", "timing", "verbose"];
  const flags = [...help.matchAll(/^ {2}--([a-z\d-]+)(?: (\S+))?/gm)].map(([, name, value]) => [name, value]);
  const missing = [];
  for (const [name] of flags)
    if ((await page.locator(`#key-${name.replaceAll("-", "_")}`).count()) === 0) missing.push(name);
  for (const [name, words] of flags.filter(([, value]) => /^[a-z\d_-]+(\|[a-z\d_-]+)+$/.test(value ?? ""))) {
    const offered = page.locator(`#key-${name.replaceAll("-", "_")}-words option`);
    assert.deepEqual(await offered.evaluateAll((o) => o.map((each) => each.value)), words.split("|"), name);
  }
  assert.ok((await page.locator("#key-stack-words option").count()) > 5);
  assert.deepEqual(missing.sort(), [...files, ...terminal].sort());
  await context.close();
});

test("what a config.json lacks can be given, and stays when a row is loaded", async () => {
  const config = {
    model_type: "llama",
    architectures: ["LlamaForCausalLM"],
    hidden_size: 1024,
    num_hidden_layers: 8,
    num_attention_heads: 16,
    vocab_size: 32000,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: false,
  };
  const { page, context } = await ask(browser, server.url, ["llama3-8b", "--on", "8xh100-sxm"]);
  const buffer = Buffer.from(JSON.stringify(config));
  await page.setInputFiles("#file", { name: "config.json", mimeType: "application/json", buffer });
  await page.waitForSelector(".error");
  assert.match(await page.locator(".error").innerText(), /--assume intermediate_size=/);
  await page.fill("#assume", "intermediate_size=4096, hidden_act=silu");
  await page.press("#assume", "Enter");
  await page.waitForSelector(".headline");
  await settled(page);
  await planned(page);
  const assumed = " --assume hidden_act=silu --assume intermediate_size=4096";
  assert.match(await command(page, "row"), /^preflop estimate config\.json --on 8xh100-sxm /);
  assert.ok((await command(page, "row")).endsWith(assumed));
  await page.click('[data-key="plan:1"]');
  await settled(page);
  assert.deepEqual(await page.locator("table.plans tr.here th").allTextContents(), ["2"]);
  assert.match(await command(page, "estimate"), / --assume intermediate_size=4096/);
  await page.fill("#model", "llama3-8b");
  await page.press("#model", "Enter");
  await page.waitForFunction(() => document.querySelector(".what")?.textContent.includes("llama3-8b"));
  await settled(page);
  assert.equal(await page.locator("#assume").count(), 0);
  await context.close();
});
