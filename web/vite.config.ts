// The page as a folder that works from any path: relative addresses only, the engine beside it compressed, and a
// service worker that keeps all of it for use offline. PREFLOP_WASM names another build of the engine.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

const wasm = process.env.PREFLOP_WASM ?? "../build/wasm/preflop.wasm";
const engine = () => gzipSync(readFileSync(wasm), { level: 9 });

// engine.bin: preflop.wasm, gzip: not every static server compresses WebAssembly. The worker unpacks it.
function engineFile(): Plugin {
  return {
    name: "preflop-engine",
    configureServer(server) {
      server.middlewares.use("/engine.bin", (_request, response) => {
        response.setHeader("Content-Type", "application/octet-stream");
        response.end(engine());
      });
    },
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "engine.bin", source: engine() });
    },
  };
}

// sw.js: every file of the build by name, under a cache named after their contents.
function serviceWorker(): Plugin {
  return {
    name: "preflop-service-worker",
    enforce: "post",
    generateBundle(_options, bundle) {
      const hash = createHash("sha256");
      for (const file of Object.values(bundle)) hash.update(file.type === "asset" ? file.source : file.code);
      const files = ["./", ...Object.keys(bundle).filter((name) => name !== "index.html")];
      const source = readFileSync("src/sw.js", "utf8")
        .replace("__VERSION__", hash.digest("hex").slice(0, 12))
        .replace("__FILES__", JSON.stringify(files));
      this.emitFile({ type: "asset", fileName: "sw.js", source });
    },
  };
}

// preflop.html: all of it in one file, for opening from a disk, where browsers load neither modules nor workers.
function singleFile(): Plugin {
  return {
    name: "preflop-single-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const named = (pattern: RegExp): string => {
        const file = Object.values(bundle).find((f) => pattern.test(f.fileName));
        if (!file) throw new Error(`no ${pattern} in the build`);
        return file.type === "asset" ? String(file.source) : file.code;
      };
      const script = (text: string): string => text.replaceAll("</script", "<\\/script");
      const inline = JSON.stringify({ engine: engine().toString("base64"), worker: named(/worker.*\.js$/) });
      const page = named(/index\.html$/)
        .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${named(/\.css$/)}</style>`)
        .replace(/<script type="module"[^>]*><\/script>/, "")
        .replace(
          "</body>",
          () =>
            `<script>var preflopInline=${script(inline)}</script><script type="module">${script(named(/index.*\.js$/))}</script></body>`,
        );
      this.emitFile({ type: "asset", fileName: "preflop.html", source: page });
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [engineFile(), serviceWorker(), singleFile()],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: false },
  worker: { format: "es" },
});
