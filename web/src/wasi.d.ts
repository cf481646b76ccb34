declare module "*/wasi.mjs" {
  export function loadPreflop(source: BufferSource | WebAssembly.Module): Promise<{ answer(call: string): string }>;
}
