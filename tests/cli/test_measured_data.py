"""The measured rows, their vocabulary and their tool agree with one another and with the tables they came from."""
import csv
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("PREFLOP_SHARED", ROOT.parent / "shared"))
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import import_measured as tool  # noqa: E402

ROWS = {
    "bigscience-a100-200b": 106, "bigscience-v100": 26, "korthikanti-2022": 11, "litgpt": 77, "llm-foundry": 170,
    "maxtext": 51, "megatron-2020": 10, "misc-frameworks": 41, "moe-parallel-folding-2025": 74, "nanotron": 26,
    "narayanan-2021": 18, "nvidia-dgxc-benchmarking": 313, "nvidia-megatron-bridge": 238, "nvidia-megatron-lm": 14,
    "nvidia-nemo-docs": 71, "papers-misc": 28, "simumax-b200": 33, "torchtitan": 48, "torchtune": 35,
    "user-cases-bulk": 240, "user-cases": 93, "vtrain-a100": 88, "whole-run-gpu-hours": 26, "zero-bubble-2023": 37,
}
STACKS = {"textbook", "megatron", "megatron-fsdp", "megatron-deepspeed", "torchtitan", "fsdp1", "transformers",
          "deepspeed", "torchtune", "litgpt", "nanotron", "foundry", "maxtext"}
PRECISIONS = {"bf16", "fp16", "fp32", "fp8-tensorwise", "fp8-delayed", "fp8-rowwise", "fp8-blockwise", "mxfp8",
              "nvfp4"}
# Figures of a run: never changed on import. Layout and batch may be corrected by a rule, with its reason.
MEASURED = ["tok_s_gpu", "step_s", "tflops_gpu", "mfu", "hfu", "peak_mem_gib", "oom"]
LAYOUT = ["gpus", "seq", "gbs", "mbs", "tp", "pp", "vpp", "cp", "ep", "etp", "dp", "gpus_per_node", "params"]
needs_shared = unittest.skipUnless((SHARED / "measured").is_dir(), "the original tables are not here")


def read(path):
    return tool.read(path)


def ours():
    return {p.stem: read(p) for p in sorted((ROOT / "data/measured").glob("*.csv"))}


def theirs():
    return {pathlib.Path(p).stem: read(p) for p in sorted(glob.glob(str(SHARED / "measured/*.csv")))}


class Committed(unittest.TestCase):
    def test_row_counts(self):
        counts = {stem: len(rows) for stem, rows in ours().items()}
        self.assertEqual(counts, ROWS)
        self.assertEqual(sum(counts.values()), 1874)

    def test_ids_are_unique_and_columns_known_and_used(self):
        for stem, rows in ours().items():
            self.assertEqual(len({r["id"] for r in rows}), len(rows), stem)
            for column in rows[0]:
                self.assertIn(column, tool.COLUMNS, stem)
                self.assertTrue(any(r[column] for r in rows), f"{stem}.{column} is empty")

    def test_no_text(self):
        for stem, rows in ours().items():
            for row in rows:
                for column, cell in row.items():
                    self.assertLessEqual(len(cell), 80, f"{stem} {row['id']} {column}")
                    if column not in ("flags", "assumed", "refused"):
                        self.assertNotIn(" ", cell, f"{stem} {row['id']} {column}")

    def test_numbers_are_numbers(self):
        for stem, rows in ours().items():
            for row in rows:
                for column in tool.NUMBERS + ["size_b", "cap_gb", "net_gbps", "hsdp", "peak_bytes", "device_gib"]:
                    cell = row.get(column, "")
                    if cell:
                        self.assertGreaterEqual(float(cell), 0, f"{stem} {row['id']} {column}")

    def test_flags_are_documented(self):
        text = (ROOT / "docs/rows-format.md").read_text()
        seen = {f for rows in ours().values() for r in rows for f in r.get("flags", "").split()}
        self.assertEqual(sorted(f for f in seen if f"`{f}`" not in text), [])
        self.assertEqual(sorted(c for c in tool.COLUMNS if f"`{c}`" not in text), [])

    def test_values_are_in_their_grammar(self):
        for stem, rows in ours().items():
            for row in rows:
                where = f"{stem} {row['id']}"
                if row.get("stack"):
                    self.assertIn(row["stack"].split("@")[0], STACKS, where)
                if row.get("precision"):
                    self.assertIn(row["precision"], PRECISIONS, where)
                self.assertIn(row.get("zero", ""), ("", "0", "1", "2", "3"), where)
                self.assertIn(row.get("mem_kind", ""), ("", "allocated", "reserved", "device"), where)
                self.assertEqual(bool(row.get("mem_kind")), bool(row.get("peak_mem_gib")), where)
                self.assertRegex(row.get("lora", ""), r"^(|yes|r=\d+,targets=[\w+-]+)$", where)

    def test_sources_and_references_cover_every_file(self):
        self.assertEqual({r["file"] for r in read(ROOT / "data/measured_sources.csv")}, set(ROWS))
        refs = {(r["file"], r["ref"]) for r in read(ROOT / "data/measured_refs.csv")}
        for stem, rows in ours().items():
            for row in rows:
                self.assertIn((stem, row["ref"].split(":")[0]), refs, row["id"])

    def test_vocabulary_keys(self):
        seen = set()
        for entry in read(ROOT / "data/vocabulary.csv"):
            self.assertNotIn((entry["column"], entry["string"]), seen)
            seen.add((entry["column"], entry["string"]))
            self.assertIn(entry["verdict"], ("mapped", "refused"))
            self.assertTrue(entry["verdict"] == "mapped" or entry["reason"] and not entry["keys"], entry["string"])
            for key, value, _ in tool.pairs(entry["keys"]):
                self.assertIn(key, tool.COLUMNS + ["flag", "replicas"], entry["string"])
                self.assertTrue(value, entry["string"])

    def test_facts_that_were_only_in_notes(self):
        rows = {r["id"]: r for table in ours().values() for r in table}
        self.assertEqual(rows["dgxc-v25.04-h100-gpt3-175b-bf16-g512-gbs1204"]["gbs"], "1024")
        self.assertEqual(rows["bloom-prequel-112"]["grad_dtype"], "fp32")
        self.assertEqual(rows["bloom-prequel-112"]["split"], "slots")
        self.assertEqual(rows["bloom-prequel-001"]["mem_kind"], "device")
        self.assertEqual(rows["uc35c"]["loss"], "fused-linear")
        self.assertEqual(rows["zerobubble-1.5b-1f1b-i-m24"]["vpp"], "3")
        self.assertEqual(rows["fms-a80-l10"]["peak_bytes"], "72434837504")
        self.assertEqual(rows["mb-26.06-b300-nemotron-3-super-pretrain-nvfp4-g64-gbs512"]["graph_scope"],
                         "attn,mamba,moe_router,moe_preprocess")
        self.assertEqual(rows["run-llama1-7b"]["run_hours"], "82432")
        cut = rows["simumax-b200-llama3-405b-l4-tp1-pp2-dp4-mbc4-cef"]
        self.assertEqual((cut["layers"], cut["kv_heads"], cut["loss"]), ("4", "16", "fused"))
        self.assertEqual(cut["stage_gib"], "86.610/87.083")


@needs_shared
class AgainstOriginals(unittest.TestCase):
    def test_every_string_is_in_the_vocabulary(self):
        known = {(r["column"], r["string"]) for r in read(ROOT / "data/vocabulary.csv")}
        missing = {(c, r[c].strip()) for rows in theirs().values() for r in rows for c in tool.WORDS} - known
        self.assertEqual(sorted(missing), [])

    def test_committed_files_are_what_the_tool_writes(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([sys.executable, str(ROOT / "tools/import_measured.py"), str(SHARED), "--out", out],
                           check=True, stdout=subprocess.DEVNULL)
            written = sorted(pathlib.Path(out).rglob("*.csv"))
            self.assertEqual(len(written), len(ROWS) + 1)
            for path in written:
                committed = ROOT / "data" / path.relative_to(out)
                self.assertEqual(committed.read_bytes(), path.read_bytes(), committed.name)

    def test_numbers_equal_the_originals(self):
        mine, checked = ours(), 0
        for stem, rows in theirs().items():
            self.assertEqual([r["id"] for r in rows], [r["id"] for r in mine[stem]])
            for raw, row in zip(rows, mine[stem]):
                for column in MEASURED:
                    self.assertEqual(row.get(column, ""), raw[column], f"{raw['id']} {column}")
                    checked += bool(raw[column])
        self.assertGreater(checked, 3800)

    def test_layout_differs_only_where_a_rule_says_so(self):
        mine, changed = ours(), set()
        for stem, rows in theirs().items():
            for raw, row in zip(rows, mine[stem]):
                changed |= {(stem, c) for c in LAYOUT if raw[c] and raw[c] != row.get(c, "")}
        self.assertEqual(changed, {("litgpt", "gpus"), ("papers-misc", "gpus"), ("whole-run-gpu-hours", "gpus"),
                                   ("zero-bubble-2023", "vpp")})

    def test_shape_is_kept_or_is_the_catalogues(self):
        catalogue, mine = tool.load_catalogue(SHARED), ours()
        for stem, rows in theirs().items():
            for raw, row in zip(rows, mine[stem]):
                known = catalogue.get(row.get("model", ""), {})
                for column in tool.SHAPE:
                    if not raw[column] or row.get(column, "") == raw[column]:
                        continue
                    if (row["model"], column) in tool.CATALOGUE_WINS:
                        continue
                    same = known.get(column) == raw[column] or column == "ffn" and known.get("moe_ffn") == raw[column]
                    self.assertTrue(same, f"{raw['id']} {column}")

    def test_no_sentence_of_the_notes_was_carried(self):
        text = "\n".join(p.read_text() for p in (ROOT / "data/measured").glob("*.csv"))
        for rows in theirs().values():
            for raw in rows:
                for part in re.split(r"[;.]\s", raw["notes"]):
                    if part.count(" ") >= 3:
                        self.assertNotIn(part, text, raw["id"])


if __name__ == "__main__":
    unittest.main()
