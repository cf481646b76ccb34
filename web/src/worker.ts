// The engine in a thread of its own: answers calls in order, and searches plans in slices between them.
import { loadPreflop } from "../../bindings/web/wasi.mjs";

interface Task {
  id: number;
  call: string;
}
type Message = { engine: ArrayBuffer | WebAssembly.Module } | { tasks: Task[] } | { plan: Task } | { stop: true };

let engine: { answer(call: string): string } | null = null;
let plan: Task | null = null;
let slice = 1 << 12; // ordinals; grows until a slice takes about SLICE_MS
const SLICE_MS = 40;

function advancePlan(): void {
  if (engine === null || plan === null) return;
  const from = performance.now();
  const answer = engine.answer(JSON.stringify({ call: "plan-advance", ordinals: slice }));
  const took = performance.now() - from;
  slice = Math.max(1 << 8, Math.min(1 << 24, Math.round((slice * SLICE_MS) / Math.max(took, 1))));
  const at = JSON.parse(answer) as { done?: boolean; error?: string };
  postMessage({ id: plan.id, progress: at });
  if (at.done || at.error) {
    postMessage({ id: plan.id, answer: at.error ? answer : engine.answer(JSON.stringify({ call: "plan-result" })) });
    plan = null;
  } else {
    setTimeout(advancePlan, 0); // calls that have come in meanwhile go first
  }
}

function beginPlan(task: Task): void {
  const idle = plan === null;
  const answer = engine!.answer(task.call);
  const at = JSON.parse(answer) as { error?: string };
  plan = at.error ? null : task;
  if (at.error) postMessage({ id: task.id, answer });
  else if (idle) setTimeout(advancePlan, 0);
}

onmessage = async (event: MessageEvent<Message>) => {
  const message = event.data;
  if ("engine" in message) {
    const module =
      message.engine instanceof WebAssembly.Module ? message.engine : await WebAssembly.compile(message.engine);
    engine = await loadPreflop(module);
    postMessage({ ready: module });
  } else if ("tasks" in message) {
    for (const { id, call } of message.tasks) postMessage({ id, answer: engine!.answer(call) });
  } else if ("plan" in message) {
    beginPlan(message.plan);
  } else {
    plan = null;
    engine!.answer(JSON.stringify({ call: "plan-cancel" }));
  }
};
