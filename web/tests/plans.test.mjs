// What the page says of a plan is what the command line says of the same question; a row that is loaded is that row.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, cli, cliJson, command, launch, open, planned, serve, settled } from "./support.mjs";

let server, browser;
before(async () => {
  server = await serve();
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.close();
});

const GIB = 1024 ** 3;
const all = (page, selector) => page.locator(selector).allTextContents();

// Notes and switches as the JSON has them, all of which the text prints.
async function sameWords(page, plan) {
  assert.deepEqual(await all(page, "#plans-body .notes li"), plan.notes);
  assert.deepEqual(await all(page, "#plans-body .gains li"), [...plan.switches_would_gain, ...plan.opened_would_gain]);
  assert.deepEqual(await all(page, "#plans-body .why li"), plan.why);
}

async function copies(page, id) {
  await page.locator(`#command-${id} button`).click();
  await page.waitForFunction(() => document.querySelector("#status").textContent === "Command copied");
  return page.evaluate(() => navigator.clipboard.readText());
}

test("the command of the first plan, notes and switches are those of the command line", async () => {
  for (const flags of [
    ["llama3-8b", "--on", "64xh100-sxm"],
    ["llama3-70b", "--on", "40xh100-sxm", "--stack", "megatron"],
  ]) {
    const plan = cliJson("plan", ...flags);
    assert.ok(plan.switches_would_gain.length > 0, "the case says something");
    const { page, context, faults } = await ask(browser, server.url, flags);
    await planned(page);
    await sameWords(page, plan);
    assert.match(await page.locator(".again h3").innerText(), /^The first again/);
    assert.equal(await command(page, "row"), plan.plans[0].command);
    assert.equal(await copies(page, "row"), plan.plans[0].command);
    assert.equal(await copies(page, "plan"), `preflop plan ${flags.join(" ")}`);
    assert.deepEqual(faults, []);
    await context.close();
  }
});

// On 24 GPUs not every layout can share out the same batch: what is loaded has that of the plan all the same.
test("every row that is loaded is the row, and its command is shown", async () => {
  const flags = ["llama3-8b", "--on", "24xh100-sxm"];
  const plan = cliJson("plan", ...flags);
  const { page, context, faults } = await ask(browser, server.url, flags);
  await planned(page);
  for (const i of [1, 2, 0]) {
    await page.click(`[data-key="plan:${i}"]`);
    await settled(page);
    const e = plan.plans[i];
    assert.deepEqual(await all(page, "table.plans tr.here th"), [String(i + 1)]);
    assert.equal(await command(page, "row"), e.command);
    assert.equal(await page.locator(".again h3").innerText(), i === 0 ? "The first again:" : `#${i + 1} again:`);
    assert.match(await page.locator(".headline").innerText(), new RegExp((e.memory.margin_bytes / GIB).toFixed(1)));
    assert.ok((await page.locator(".layout").innerText()).includes(`of ${e.recipe.global_batch} sequences`));
    // The plan is still the one that was searched, and says so.
    assert.equal(await command(page, "plan"), `preflop plan ${flags.join(" ")}`);
    const line = (await command(page, "estimate")).split(" ").slice(1);
    assert.equal(JSON.parse(cli(...line, "--json")).step.seconds, e.step.seconds);
  }
  assert.deepEqual(faults, []);
  await context.close();
});

test("clusters of one kind of GPU are told apart, and each has its command", async () => {
  const flags = ["llama3-8b", "--on", "16xaws-p5", "--tokens", "100B"];
  const further = ["--on", "16xh100-sxm/4", "--on", "24xgcp-a3-mega"];
  const plan = cliJson("plan", ...flags, ...further);
  assert.ok(plan.notes.length > 0, "the batch differs");
  const { page, context, faults } = await ask(
    browser,
    server.url,
    flags,
    `;clusters=${encodeURIComponent("16xh100-sxm/4,24xgcp-a3-mega")}`,
  );
  await planned(page);
  await sameWords(page, plan);
  const rows = await all(page, ".clusters tbody tr");
  assert.equal(rows.length, plan.scaling.length);
  plan.scaling.forEach((p, i) => {
    assert.ok(rows[i].startsWith(/--on (\d+)x(\S+)/.exec(p.command).slice(1).join(" × ")), rows[i]);
    assert.ok(rows[i].includes(`${(p.mfu * 100).toFixed(1)} %`), rows[i]);
    assert.ok(rows[i].includes(`$${Math.round(p.cost_usd).toLocaleString("en")}`), rows[i]);
  });
  for (const i of [1, 2]) {
    await page.click(`[data-key="cluster:${i}"]`);
    await settled(page);
    assert.equal(await command(page, "cluster"), plan.scaling[i].command);
    assert.equal(await copies(page, "cluster"), plan.scaling[i].command);
    const e = JSON.parse(cli(...plan.scaling[i].command.split(" ").slice(1), "--json"));
    assert.equal(e.step.seconds, plan.scaling[i].step_seconds);
    assert.ok((await page.locator(".what").innerText()).includes(e.cluster.platform ?? e.cluster.gpu));
    assert.ok((await page.locator("#verdict").innerText()).includes(`${(e.step.mfu * 100).toFixed(1)} %`));
  }
  assert.deepEqual(faults, []);
  await context.close();
});

test("a command that is selected is the command, however its lines are broken", async () => {
  const { page, context } = await ask(browser, server.url, ["llama3-8b", "--on", "8xh100-sxm"], "", {
    viewport: { width: 320, height: 800 },
  });
  await planned(page);
  const selected = await page.evaluate(() => {
    getSelection().selectAllChildren(document.querySelector("#command-row code"));
    return getSelection().toString();
  });
  assert.equal(selected, await command(page, "row"));
  await context.close();
});

test("where no plan is found, the nearest and what it misses are named, short of memory or not", async () => {
  for (const flags of [
    ["llama3-70b", "--on", "8xh100-sxm"],
    ["llama3-8b", "--on", "8xh100-sxm", "--tokens", "1T", "--within", "10d"],
  ]) {
    const { page, context } = await ask(browser, server.url, flags);
    await page.waitForFunction(() => /No plan found/.test(document.querySelector("#plans-body")?.textContent ?? ""));
    let plan = "";
    try {
      cli("plan", ...flags, "--json");
    } catch (error) {
      plan = JSON.parse(error.stdout);
    }
    assert.ok((await page.locator("#plans-body p").first().innerText()).endsWith(`; ${plan.nearest_why}.`));
    assert.deepEqual(await all(page, "#plans-body .notes li"), plan.notes);
    await context.close();
  }
});

test("what the search may do is that of the command line, and stands in the address", async () => {
  const flags = ["llama3-8b", "--on", "16xh100-sxm"];
  const { page, context, faults } = await ask(browser, server.url, flags);
  await page.click(".search summary");
  await page.selectOption("#search-open", "precision,optimizer");
  await settled(page);
  await page.fill("#search-max_memory", "60GiB");
  await page.press("#search-max_memory", "Enter");
  await settled(page);
  await page.fill("#search-top", "3");
  await page.press("#search-top", "Enter");
  await settled(page);
  await page.selectOption("#search-allow_tight", "true");
  await settled(page);
  await planned(page);
  const line = await command(page, "plan");
  assert.ok(line.endsWith(" --open precision,optimizer --max-memory 60GiB --top 3 --allow-tight"), line);
  const plan = cliJson(...line.split(" ").slice(1));
  const rows = await all(page, "#plans-body > .scroll .plans tbody tr");
  assert.equal(rows.length, plan.plans.length);
  plan.plans.forEach((e, i) => assert.ok(rows[i].includes(`${e.recipe.precision} ${e.recipe.optimizer}`), rows[i]));
  assert.equal(await command(page, "row"), plan.plans[0].command);
  await page.click('[data-key="plan:1"]');
  await settled(page);
  assert.deepEqual(await all(page, "table.plans tr.here th"), ["2"]);
  assert.equal(await command(page, "row"), plan.plans[1].command);
  const again = await open(browser, page.url());
  await settled(again.page);
  assert.equal(await again.page.inputValue("#search-max_memory"), "60GiB");
  assert.deepEqual([...faults, ...again.faults], []);
  await context.close();
  await again.context.close();
});
