#!/usr/bin/env python3
"""Write data/measured/*.csv from a folder of published runs.

    tools/import_measured.py SHARED_DIR [--out DATA_DIR]

SHARED_DIR/measured/*.csv are tables in the schema of SHARED_DIR/measured/SCHEMA.md. Each row becomes one
row of the project's own schema (docs/rows-format.md): strings become flags through data/vocabulary.csv,
notes become typed columns through tools/measured_rules.csv, shape cells that the catalogue already holds
are dropped, references become numbers of data/measured_refs.csv. No row is dropped and no free text is
carried. The output depends on the input only, byte for byte. Fails on any string, rule or shape that it
does not know.
"""
import argparse
import csv
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPE = ["layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "experts", "topk"]
# Columns whose strings go through the vocabulary.
WORDS = ["framework", "model", "gpu", "precision", "sharding", "recompute", "optimizer", "lora", "offload",
         "mem_kind", "seq_parallel", "internode", "tflops_kind"]
# Copied as they are.
NUMBERS = ["params", *SHAPE, "gpus", "gpus_per_node", "seq", "gbs", "mbs", "tp", "pp", "vpp", "cp", "ep", "etp",
           "dp", "tok_s_gpu", "step_s", "tflops_gpu", "mfu", "hfu", "peak_mem_gib"]
PLAIN = ["compile", "oom", "date"]
COLUMNS = [
    "id", "ref", "date", "stack", "task", "model", "params", "size_b", *SHAPE, "head_dim", "moe_ffn", "dense_layers",
    "mtp", "gpu", "cap_gb", "gpus", "gpus_per_node", "net_gbps", "precision", "bf16_layers", "weight_dtype",
    "grad_dtype", "reduce_dtype", "master_dtype", "moment_dtype", "quantize", "seq", "longest", "packing",
    "mean_length", "gbs", "mbs", "tp", "pp", "vpp", "cp", "ep", "etp", "dp", "mp", "folding", "zero", "hsdp", "seq_parallel",
    "schedule", "split", "pp_layout", "recompute", "offload", "compile", "optimizer", "optimizer_in_backward",
    "lora", "loss", "attention", "cp_comm", "dispatcher", "capacity", "cuda_graph", "graph_scope", "tok_s_gpu",
    "samples_s", "step_s", "tflops_gpu", "convention", "peak_tflops", "mfu", "mfu_causal", "hfu", "peak_mem_gib",
    "mem_kind", "peak_bytes", "reserved_gib", "device_gib", "end_gib", "stage_gib", "oom", "bubble", "run_hours",
    "run_tokens_b", "flags", "assumed", "refused",
]
# A shape cell that differs from the catalogue: the row's own figure is what was run ...
ROW_WINS = {("mpt-7b", "vocab"), ("grok-1", "vocab"), ("gpt3-175b", "vocab"), ("llama3.1-405b", "kv_heads")}
# ... or a figure of the tokenizer or of the unpadded table, and the catalogue counts what was trained.
CATALOGUE_WINS = {("bloom-176b", "vocab"), ("pythia-12b", "vocab")}


def fail(message):
    sys.exit("import_measured: " + message)


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def pairs(text):
    """'a=1 b!=2' -> [(a, 1, False), (b, 2, True)]; != replaces what the row already says."""
    out = []
    for token in text.split():
        match = re.fullmatch(r"(\w+)(!?)=(.*)", token)
        if not match:
            fail(f"'{token}' is not key=value")
        out.append((match[1], match[3], bool(match[2])))
    return out


def load_vocabulary():
    return {(r["column"], r["string"]): r for r in read(ROOT / "data/vocabulary.csv")}


def load_rules():
    rules = read(ROOT / "tools/measured_rules.csv")
    for rule in rules:
        rule["regex"] = re.compile(rule["pattern"])
        rule["hits"] = 0
    return rules


def load_catalogue(shared):
    return {r["canonical_id"]: r for r in read(shared / "facts/ids.csv") if r["kind"] == "model"}


class Row:
    """One row in the making: cells, flags, keys that were assumed, names that were refused."""

    def __init__(self, raw):
        self.raw = raw
        self.cells = {c: raw[c].strip() for c in NUMBERS + PLAIN}
        self.cells["id"] = raw["id"]
        self.flags, self.assumed, self.refused = [], [], []

    def set(self, key, value, force=False):
        """Returns whether the value was written: a cell that is already set stays unless forced."""
        if key == "flag":
            if value not in self.flags:
                self.flags.append(value)
            return True
        if self.cells.get(key) and not force:
            return False
        self.cells[key] = value
        return True

    def assume(self, keys):
        self.assumed += [k for k in keys if k not in self.assumed]


def apply_vocabulary(row, vocabulary):
    for column in WORDS:
        entry = vocabulary.get((column, row.raw[column].strip()))
        if entry is None:
            fail(f"{row.raw['id']}: {column} '{row.raw[column]}' is not in data/vocabulary.csv")
        if entry["verdict"] == "refused":
            row.refused.append(entry["reason"])
        for key, value, force in pairs(entry["keys"]):
            row.set(key, value, force)
        row.assume(entry["assumed"].split())


def number(text):
    return f"{text:.3f}".rstrip("0").rstrip(".")


def expand(row, value, match):
    """{1} is a group of the pattern without thousands separators, {1/1024} the group divided, {date} the date."""

    def group(part):
        if part[1] == "date":
            return row.raw["date"]
        text = re.sub(r"(?<=\d),(?=\d{3})", "", match[int(part[1])] or "")
        return text if not part[2] else number(float(text) / float(part[2]))

    out = re.sub(r"\{(\d|date)(?:/(\d+))?\}", group, value)
    return re.sub(r"[\s'\[\]]+", lambda m: "" if m[0] != " " else "", out)


def apply_rules(row, rules, stem):
    for rule in rules:
        if rule["file"] not in ("*", stem):
            continue
        match = rule["regex"].search(row.raw[rule["field"]])
        if not match:
            continue
        rule["hits"] += 1
        taken = {key for key, value, force in pairs(rule["keys"]) if row.set(key, expand(row, value, match), force)}
        row.assumed = [k for k in row.assumed if k not in taken]
        row.assume([k for k in rule["assumed"].split() if k in taken])


def finish_parallel(row):
    cells = row.cells
    generation, name = cells.pop("stack_gen", ""), cells.pop("stack_name", "")
    stack, _, old = cells.get("stack", "").partition("@")
    if generation.startswith("nemo") and not stack.startswith("megatron"):
        generation = ""  # the release names the container of the Megatron stacks only
    generation = old or generation
    if stack:
        cells["stack"] = (name or stack) + ("@" + generation if generation else "")
    if cells.get("mbs") == "micro":
        cells["mbs"] = str(int(cells["gbs"]) // int(cells["dp"] or 1))
    if cells.get("vpp") == "slots":
        cells["vpp"] = str((int(cells["layers"] or row.shape["layers"]) + 2) // int(cells["pp"]))
    replicas = int(cells.pop("replicas", "") or 1)
    if replicas > 1 and not cells.get("hsdp"):
        model = 1
        for axis in ("tp", "pp", "cp"):
            model *= int(cells[axis] or 1)
        cells["hsdp"] = str(int(cells["dp"] or int(cells["gpus"]) // model) // replicas)


def finish_memory(row):
    """Largest peak of each pipeline stage, first to last; ranks are ordered with the pipeline outermost."""
    if not row.cells["peak_mem_gib"]:
        row.cells["mem_kind"] = ""
        row.assumed = [k for k in row.assumed if k != "mem_kind"]
    match = re.search(r"per-rank max allocated GiB \(MB/1024\): ([\d.,]+)", row.raw["notes"])
    if match:
        peaks = [float(x) for x in match[1].split(",")]
        size = len(peaks) // int(row.cells["pp"])
        stages = [max(peaks[i:i + size]) for i in range(0, len(peaks), size)]
        row.cells["stage_gib"] = "/".join(f"{x:.3f}" for x in stages)


def finish_shape(row, catalogue):
    """Drops the shape cells that the catalogue holds; keeps overrides; refuses to guess."""
    cells, shape = row.cells, catalogue.get(row.cells.get("model", ""))
    row.shape = shape
    if shape is None:
        return
    for column in SHAPE:
        value = cells[column]
        if not value or not shape[column]:
            continue
        same = value == shape[column] or column == "ffn" and value == shape["moe_ffn"]
        if same or (cells["model"], column) in CATALOGUE_WINS:
            cells[column] = ""
        elif value != row.raw[column].strip() or column in ("layers", "experts", "topk"):
            continue  # set by the vocabulary or by a rule; or a model cut or refined on purpose
        elif (cells["model"], column) not in ROW_WINS:
            fail(f"{row.raw['id']}: {column} {value} differs from the catalogue's {shape[column]}")


def reference(raw, refs):
    """Number of the reference, and the place inside it: '3:476'."""
    text = re.sub(r"\([^)]*\)|'[^']*'|\"[^\"]*\"", "", raw["source_ref"])
    place = re.search(r"[, ]*\b(?:lines?|row|case)\s+([\w.-]+)", text)
    if place:
        text = text.replace(place[0], "")
    text = re.sub(r"\s+", " ", re.sub(r"[,;:]\s*(?=$|[,;:])", "", text)).strip(" ,;:")
    index = refs.setdefault(text, len(refs) + 1)
    return f"{index}:{place[1]}" if place and place[1].isdigit() else str(index)


def import_file(path, vocabulary, rules, catalogue):
    refs, out = {}, []
    for raw in read(path):
        row = Row(raw)
        row.cells["ref"] = reference(raw, refs)
        apply_vocabulary(row, vocabulary)
        for column in NUMBERS:
            if row.cells[column] and not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", row.cells[column]):
                row.cells[column] = ""
        apply_rules(row, rules, path.stem)
        finish_shape(row, catalogue)
        finish_parallel(row)
        finish_memory(row)
        row.cells["flags"] = " ".join(row.flags)
        row.cells["assumed"] = " ".join(sorted(row.assumed))
        row.cells["refused"] = "; ".join(row.refused)
        out.append(row.cells)
    return refs, out


def used_columns(stem, rows):
    unknown = {k for row in rows for k, v in row.items() if v} - set(COLUMNS)
    if unknown:
        fail(f"{stem}: columns {sorted(unknown)} are not in the schema")
    return [c for c in COLUMNS if any(row.get(c) for row in rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "data")
    args = parser.parse_args()
    vocabulary, rules, catalogue = load_vocabulary(), load_rules(), load_catalogue(args.shared)
    (args.out / "measured").mkdir(parents=True, exist_ok=True)
    references, total = [], 0
    for path in sorted((args.shared / "measured").glob("*.csv")):
        refs, rows = import_file(path, vocabulary, rules, catalogue)
        header = used_columns(path.stem, rows)
        write(args.out / "measured" / path.name, header, [[row.get(c, "") for c in header] for row in rows])
        references += [[path.stem, index, text] for text, index in refs.items()]
        total += len(rows)
    write(args.out / "measured_refs.csv", ["file", "ref", "reference"], references)
    for rule in rules:
        if not rule["hits"]:
            fail(f"rule {rule['file']} {rule['field']} /{rule['pattern']}/ matches no row")
    print(f"{total} rows")


if __name__ == "__main__":
    main()
