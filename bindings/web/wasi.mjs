// Loads preflop.wasm in node or a page. The module computes and does no I/O; what its C library
// imports from WASI is answered by the few lines below, anything else by "not supported".

const SUCCESS = 0, BADF = 8, NOSYS = 52;

function wasiImports(memory) {
  const view = () => new DataView(memory().buffer);
  const known = {
    // Messages of an aborting C library: shown, so that a fault is never silent.
    fd_write(fd, vectors, count, written) {
      let text = "", total = 0;
      for (let i = 0; i < count; ++i) {
        const at = view().getUint32(vectors + 8 * i, true), size = view().getUint32(vectors + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory().buffer, at, size));
        total += size;
      }
      view().setUint32(written, total, true);
      if (text) console.error(text);
      return SUCCESS;
    },
    fd_close: () => SUCCESS,
    fd_fdstat_get: () => BADF,
    fd_prestat_get: () => BADF,
    fd_seek: () => BADF,
    fd_read: () => BADF,
    environ_get: () => SUCCESS,
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return SUCCESS;
    },
    proc_exit(code) {
      throw new Error(`preflop.wasm exited with ${code}`);
    },
  };
  return new Proxy(known, { get: (target, name) => target[name] ?? (() => NOSYS) });
}

// `source`: the module's bytes, or a compiled WebAssembly.Module. Resolves to one session (src/adapt/api.hpp):
// { answer(call: string): string }.
export async function loadPreflop(source) {
  let instance;
  const wasi_snapshot_preview1 = wasiImports(() => instance.exports.memory);
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
  // The proxy answers any name, so list what the module really asks for.
  const wasi = {};
  for (const { name } of WebAssembly.Module.imports(module)) wasi[name] = wasi_snapshot_preview1[name];
  instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi });
  const { memory, _initialize, preflop_alloc, preflop_free, preflop_open, preflop_answer } = instance.exports;
  _initialize?.();
  const session = preflop_open();

  function answer(text) {
    const bytes = new TextEncoder().encode(text);
    const call = preflop_alloc(Math.max(bytes.length, 1));
    if (call === 0) throw new Error("preflop.wasm: out of memory");
    new Uint8Array(memory.buffer, call, bytes.length).set(bytes);
    const block = preflop_answer(session, call, bytes.length);
    preflop_free(call);
    if (block === 0) throw new Error("preflop.wasm: out of memory");
    const length = new DataView(memory.buffer).getUint32(block, true);
    const result = new TextDecoder().decode(new Uint8Array(memory.buffer, block + 4, length));
    preflop_free(block);
    return result;
  }
  return { answer };
}
