// node tests/screenshots.mjs [FOLDER]: what the page looks like, for eyes.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { launch, open, serve, settled } from "./support.mjs";

const folder = process.argv[2] ?? "screenshots";
mkdirSync(folder, { recursive: true });
const server = await serve();
const browser = await launch();
const RUN = "#model=llama3-70b&on=256xh100-sxm&tp=8&pp=4&tokens=2T";
const SHOTS = [
  ["desktop-light", "", { colorScheme: "light" }],
  ["desktop-dark", RUN, { colorScheme: "dark" }],
  ["desktop-no", "#model=llama3-70b&on=64xh100-sxm&tp=2", { colorScheme: "light" }],
  [
    "desktop-clusters",
    "#model=llama3-8b&on=16xh100-sxm&tokens=1T;clusters=8..128xh100-sxm;compare=model%3Dllama3-8b%26on%3D8xh200",
    { colorScheme: "light" },
  ],
  ["desktop-error", "#model=lama3-70b&on=64xh100-sxm", { colorScheme: "light" }],
  ["phone-light", RUN, { colorScheme: "light", viewport: { width: 320, height: 640 } }],
  ["phone-dark", "", { colorScheme: "dark", viewport: { width: 390, height: 844 } }],
];
const only = process.argv[3];
for (const [name, hash, options] of SHOTS.filter(([name]) => !only || name.includes(only))) {
  const { context, page, faults } = await open(browser, server.url + hash, options);
  await settled(page);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
  await page.screenshot({ path: path.join(folder, `${name}-whole.png`), fullPage: true });
  if (name !== "desktop-error") {
    await page.locator('[data-term^="memory.peak_allocated"]').first().click();
    await page.waitForSelector(".tree", { timeout: 5000 }).catch(() => console.log(name, "no derivation"));
    await page.screenshot({ path: path.join(folder, `${name}-derivation.png`) });
  }
  if (faults.length) console.log(name, faults);
  await context.close();
}
await browser.close();
await server.close();
