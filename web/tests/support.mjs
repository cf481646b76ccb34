// A static server for dist/ under a path of its own, and Debian's Chromium.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const WEB = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const DIST = path.join(WEB, "dist");
export const ROOT = path.dirname(WEB);
export const CLI = process.env.PREFLOP ?? path.join(ROOT, "build/release/preflop");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

// The folder lies under /any/path/: relative addresses only may be used.
export async function serve(prefix = "/any/path/") {
  const asked = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost").pathname;
    asked.push(url);
    const name = url.startsWith(prefix) ? url.slice(prefix.length) || "index.html" : null;
    const file = name === null ? null : path.join(DIST, path.normalize(name));
    try {
      const body = await readFile(file);
      response.writeHead(200, { "Content-Type": TYPES[path.extname(file)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}${prefix}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}

export function launch() {
  const binary = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  if (!binary) throw new Error("no Chromium: apt install chromium");
  return chromium.launch({ executablePath: binary, args: ["--no-sandbox", "--disable-gpu"] });
}

export const cli = (...args) =>
  execFileSync(CLI, args, { encoding: "utf8", stdio: "pipe", env: { ...process.env, NO_COLOR: "1" } });
export const cliJson = (...args) => JSON.parse(cli(...args, "--json"));

// A page whose requests outside the server, errors and console errors are noted.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !/^(data|blob):/.test(request.url()))
      faults.push(`outside: ${request.url()}`);
  });
  await page.goto(url);
  return { context, page, faults };
}

// Until everything that the question leads to is there.
export const settled = (page) =>
  page.waitForFunction(
    () => document.querySelector("#verdict") && !document.querySelector("#result").hasAttribute("aria-busy"),
    null,
    { timeout: 60000 },
  );

export const planned = (page) => page.waitForSelector("#plans-body table.plans", { timeout: 60000 });
export const command = (page, id) => page.locator(`#command-${id} code`).textContent();

// The page for the words of a question: `--tp 2` is tp=2 of the address.
export async function ask(browser, url, flags, more = "", options = {}) {
  const [model, , on, ...rest] = flags;
  const keys = rest.flatMap((word, i) => (i % 2 ? [] : [[word.slice(2).replaceAll("-", "_"), rest[i + 1]]]));
  const hash = new URLSearchParams([["model", model], ["on", on], ...keys]).toString();
  const opened = await open(browser, `${url}#${hash}${more}`, options);
  await settled(opened.page);
  return opened;
}
