// The page's side of the worker. Calls are answered in order; what a newer question makes stale is dropped, and a
// worker that is deep in a stale call is replaced by a fresh one, which costs a few milliseconds.
import type { Answer } from "./types";

type Call = Record<string, unknown> & { call: string };
type Waiting = {
  resolve: (text: string) => void;
  reject: (why: Error) => void;
  progress?: (at: number, looked: number) => void;
};

export class Stale extends Error {}

// In preflop.html, which is opened from a disk: the engine and the worker's source are in the page.
interface Inline {
  engine: string;
  worker: string;
}
const inline = (globalThis as { preflopInline?: Inline }).preflopInline;

function newWorker(): Worker {
  if (!inline) return new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  return new Worker(URL.createObjectURL(new Blob([inline.worker], { type: "text/javascript" })));
}

async function unpacked(bytes: ArrayBuffer): Promise<ArrayBuffer> {
  const head = new Uint8Array(bytes, 0, 2);
  if (head[0] !== 0x1f || head[1] !== 0x8b) return bytes; // a server that has unpacked it already
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

export class Engine {
  private worker: Worker | null = null;
  private module: WebAssembly.Module | null = null;
  private ready: Promise<void> = Promise.resolve();
  private waiting = new Map<number, Waiting>();
  private next = 1;

  async load(): Promise<void> {
    if (inline) {
      const bytes = Uint8Array.from(atob(inline.engine), (c) => c.charCodeAt(0));
      return this.start(await unpacked(bytes.buffer));
    }
    const response = await fetch(new URL("engine.bin", document.baseURI));
    if (!response.ok) throw new Error(`the engine cannot be loaded: ${response.status}`);
    return this.start(await unpacked(await response.arrayBuffer()));
  }

  private start(engine: ArrayBuffer | WebAssembly.Module): Promise<void> {
    const worker = newWorker();
    this.worker = worker;
    this.ready = new Promise((resolve, reject) => {
      worker.onerror = (event) => {
        const why = new Error(event.message || "the engine stopped");
        reject(why);
        for (const { reject: each } of this.waiting.values()) each(why);
        this.waiting.clear();
        if (this.module && this.worker === worker) void this.start(this.module);
      };
      worker.onmessage = ({ data }) => {
        if (data.ready) {
          this.module = data.ready;
          resolve();
          return;
        }
        const waits = this.waiting.get(data.id);
        if (data.progress) {
          waits?.progress?.(data.progress.progress ?? 0, data.progress.looked ?? 0);
          return;
        }
        this.waiting.delete(data.id);
        waits?.resolve(data.answer);
      };
    });
    worker.postMessage({ engine });
    return this.ready;
  }

  private async send(kind: "tasks" | "plan", call: Call, progress?: Waiting["progress"]): Promise<string> {
    await this.ready;
    const task = { id: this.next++, call: JSON.stringify(call) };
    return new Promise((resolve, reject) => {
      this.waiting.set(task.id, progress ? { resolve, reject, progress } : { resolve, reject });
      this.worker!.postMessage(kind === "tasks" ? { tasks: [task] } : { plan: task });
    });
  }

  async text(call: Call): Promise<string> {
    return this.send("tasks", call);
  }
  async ask<T>(call: Call): Promise<Answer<T>> {
    return JSON.parse(await this.text(call)) as Answer<T>;
  }
  plan(call: Call, progress: (at: number, looked: number) => void): Promise<string> {
    return this.send("plan", call, progress);
  }

  cancelPlan(): void {
    this.worker?.postMessage({ stop: true });
    for (const [id, waits] of this.waiting) {
      if (!waits.progress) continue;
      this.waiting.delete(id);
      waits.reject(new Stale("cancelled"));
    }
  }

  // Everything asked so far is of no use any more.
  forget(): void {
    if (this.waiting.size === 0 || this.module === null) return;
    const stale = [...this.waiting.values()];
    this.waiting.clear();
    this.worker?.terminate();
    void this.start(this.module);
    for (const { reject } of stale) reject(new Stale("superseded"));
  }
}
