"""preflop validate from outside: the contract of the JSON, the options, a user's tables, bad tables."""
import csv
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time
import unittest

PREFLOP = os.environ["PREFLOP"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("PREFLOP_SHARED", ROOT.parent / "shared"))
HEAD = "id,stack,model,gpu,gpus,precision,seq,gbs,mbs,tp,pp,vpp,cp,zero,seq_parallel,recompute,step_s\n"
ROW = "a,megatron,llama3-8b,h100-sxm,8,bf16,8192,64,1,2,1,1,1,1,yes,none,10\n"
ROW_KEYS = {"id", "source", "group", "metric", "measured", "predicted", "low", "high", "error", "assumed", "convention",
            "skipped"}
SUMMARY_KEYS = {"source", "metric", "n", "skipped", "mape", "median", "p90", "max", "bias", "coverage", "half_width",
                "naive_mape", "false_fit", "false_oom", "tight"}


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def run(*args, text=None):
    return subprocess.run([PREFLOP, "validate", *args], input=text, capture_output=True, text=True, timeout=300)


def rows_file(text, *args):
    return run("--rows", "-", *args, text=text)


class Contract(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.done = run("--json")
        cls.json = json.loads(cls.done.stdout)

    def test_keys_and_nulls(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        self.assertEqual(self.json["schema"], "preflop.validate/1")
        for row in self.json["rows"]:
            self.assertLessEqual(ROW_KEYS, set(row))
            self.assertIsInstance(row["metric"], str)
            skipped = row["skipped"] is not None
            self.assertEqual(skipped, row["predicted"] is None, row)
            self.assertEqual(skipped, row["error"] is None, row)
            if not skipped and row["metric"] != "fit.verdict":
                self.assertAlmostEqual(row["error"], row["predicted"] / row["measured"] - 1, places=9)
        for summary in self.json["summary"]:
            self.assertLessEqual(SUMMARY_KEYS, set(summary))

    def test_every_row_of_the_tables_is_there(self):
        there = {(r["source"], r["id"]) for r in self.json["rows"]}
        for path in (ROOT / "data/measured").glob("*.csv"):
            for row in read(path):
                self.assertIn((path.stem, row["id"]), there)

    def test_summary_follows_from_the_rows(self):
        def names(row):
            if row["apart"] is None:
                return ("all", row["source"])
            return ("all", f"{row['source']} on {row['apart']}")
        tpus = [s for s in self.json["summary_apart"] if s["source"] == "all TPUs"]
        self.assertEqual(sum(s["n"] for s in tpus), sum(
            r["skipped"] is None for r in self.json["rows"] if (r["apart"] or "").startswith("tpu-")))
        both = [(s, False) for s in self.json["summary"]] + [(s, True) for s in self.json["summary_apart"]]
        for s, apart in both:
            if s["source"] == "all TPUs":
                continue
            rows = [r for r in self.json["rows"] if r["metric"] == s["metric"] and s["source"] in names(r)
                    and (r["apart"] is not None) == apart
                    and (r["convention"] == s["convention"] or s["source"] == "all" and bool(r["convention"]) == bool(s["convention"]))]
            errors = [abs(r["error"]) for r in rows if r["skipped"] is None]
            self.assertEqual((s["n"], s["skipped"]), (len(errors), len(rows) - len(errors)), s)
            if errors and s["metric"] != "fit.verdict":
                self.assertAlmostEqual(s["mape"], sum(errors) / len(errors), places=9)

    def test_the_same_bytes_twice(self):
        self.assertEqual(run("--json").stdout, self.done.stdout)

    def test_mapping_of_nineteen_in_twenty(self):
        self.assertGreaterEqual(self.json["mapping"]["share"], 0.95, self.json["mapping"]["other"])


class Options(unittest.TestCase):
    def test_source_worst_and_width(self):
        done = run("--source", "simumax-b200", "--worst", "2")
        self.assertEqual(done.returncode, 0)
        self.assertIn("simumax-b200", done.stdout)
        self.assertNotIn("zero-bubble", done.stdout)
        self.assertTrue(all(len(line) <= 80 for line in done.stdout.splitlines()))

    def test_explain(self):
        done = run("--explain", "korthikanti-22b-sp-sel")
        self.assertEqual(done.returncode, 0)
        for part in ("preflop estimate megatron-22b", "time.step_seconds", "1.100 s", "Memory by stage"):
            self.assertIn(part, done.stdout)

    def test_the_row_as_a_command_gives_the_row(self):
        rows = json.loads(run("--json").stdout)["rows"]
        seen = 0
        for source in sorted({r["source"] for r in rows}):
            like = [r for r in rows if r["source"] == source and r["metric"] == "time.step_seconds" and not r["skipped"]]
            for row in like[:: max(1, len(like) // 3)]:
                text = run("--explain", row["id"]).stdout
                if "With the machine's values" in text:
                    continue
                command = re.search(r"The row as a command\n((?:  .*\n)+)", text).group(1)
                for line in command.splitlines():  # only a word of its own may be too long
                    self.assertTrue(len(line) <= 80 or len(line.strip(" \\").split()) <= 2 or line.startswith("  preflop"), line)
                command = command.replace("preflop estimate", shlex.quote(PREFLOP) + " estimate", 1)
                done = subprocess.run(command.rstrip() + " --json", shell=True, capture_output=True, text=True, timeout=60)
                self.assertIn(done.returncode, (0, 3), (row["id"], done.stderr))
                self.assertAlmostEqual(json.loads(done.stdout)["step"]["seconds"], row["predicted"], delta=1e-9 * row["predicted"], msg=command)
                seen += 1
        self.assertGreater(seen, 20)

    def test_names_that_are_not_there(self):
        for args, hint in ((("--source", "simumax"), "simumax-b200"), (("--explain", "korthikanti-22b-sp-se"), "korthikanti-22b-sp-sel")):
            done = run(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(hint, done.stderr)

    def test_page_and_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("--write-docs", folder).returncode, 0)
            with open(os.path.join(folder, "user-cases.md")) as file:
                self.assertRegex(file.read(), r"\| uc09c \| 28\.90 GiB reserved, ran \| \d+\.\d\d GiB \([-+]\d+\.\d %\), fits \|")
            self.assertIn("# Accuracy", (pathlib.Path(folder) / "accuracy.md").read_text())
            self.assertIn("<svg", (pathlib.Path(folder) / "accuracy-time.svg").read_text())


class Tables(unittest.TestCase):
    def rows(self, text):
        done = rows_file(text, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {r["metric"]: r for r in json.loads(done.stdout)["rows"]}

    def test_a_table_of_ones_own(self):
        row = self.rows(HEAD + ROW)["time.step_seconds"]
        self.assertEqual((row["id"], row["measured"], row["assumed"]), ("a", 10, []))

    def test_windows_byte_order_mark_quotes_and_column_order(self):
        plain = self.rows(HEAD + ROW)
        self.assertEqual(self.rows("\ufeff" + (HEAD + ROW).replace("\n", "\r\n")), plain)
        self.assertEqual(self.rows(HEAD + ROW.replace("bf16", '"bf16"')), plain)
        reversed_text = "".join(",".join(line.split(",")[::-1]) + "\n" for line in (HEAD + ROW).splitlines())
        self.assertEqual(self.rows(reversed_text), plain)

    def test_names_as_people_write_them(self):
        text = ("id,source,framework,model,gpu,gpus,precision,seq,gbs,mbs,tp,pp,sharding,recompute,optimizer,tok_s_gpu,notes\n"
                "x,a page,Megatron-LM 99.9,meta-llama/Meta-Llama-3-8B,H100-SXM-80GB,8,bf16,8192,64,1,1,1,zero-1 perhaps,no recompute at all,AdamX,9000,note\n")
        row = self.rows(text)["time.step_seconds"]
        self.assertIsNone(row["skipped"])
        self.assertTrue(any(a.startswith("sharding=zero-1 perhaps") for a in row["assumed"]), row["assumed"])
        self.assertTrue(any(a.startswith("recompute=no recompute at all") for a in row["assumed"]), row["assumed"])

    def test_bad_tables(self):
        cases = [(HEAD + ROW.replace(",10\n", ",ten\n"), "standard input:2:", "not a number"),
                 (HEAD + ROW.replace("8192", "-1"), "standard input:2:38", "negative"),
                 (HEAD.replace("id,", "") + ROW[2:], "id", ""),
                 (HEAD.replace("step_s", "step_ms") + ROW, "step_ms", "step_s"),
                 (HEAD.replace(",gpu,", ",card,") + ROW, "gpu", ""),
                 (HEAD + ROW.replace(",none", ""), "standard input:2", "fields"),
                 (HEAD + ROW.replace("bf16", '"bf16'), "standard input:2", "quote"),
                 ("", "standard input", "")]
        for text, *parts in cases:
            done = rows_file(text)
            self.assertEqual((done.returncode, done.stdout), (2, ""), parts)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for part in parts:
                self.assertIn(part, done.stderr)

    def test_a_hundred_thousand_rows(self):
        start = time.time()
        done = rows_file(HEAD + "".join(ROW.replace("a,", f"r{i},", 1).replace(",64,", f",{8 * (1 + i % 100)},") for i in range(100000)), "-q")
        self.assertEqual(done.returncode, 0)
        self.assertIn("100000 rows, 100000 predicted", done.stdout)
        self.assertLess(time.time() - start, 60)

    def test_what_is_left_names_figures_of_the_page(self):
        out = json.loads(run("--json").stdout)
        figures = {(s["source"], s["metric"]) for s in out["summary"] + out["summary_apart"] if s["n"]}
        for row in read(ROOT / "data" / "residuals.csv"):
            self.assertIn((row["source"], row["metric"]), figures)
            self.assertTrue(row["residual"])

    @unittest.skipUnless((SHARED / "measured").is_dir(), "the original tables are not here")
    def test_tables_as_they_were_collected(self):
        for path in sorted((SHARED / "measured").glob("*.csv")):
            done = run("--rows", str(path), "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({r["id"] for r in json.loads(done.stdout)["rows"]},
                             {r["id"] for r in read(path)})


if __name__ == "__main__":
    unittest.main()
