"""Every name of a model, GPU or platform that the documents use is known on the command line: it resolves, or
is refused by name with a reason, never as unknown."""
import csv
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("PREFLOP_SHARED", ROOT.parent / "shared"))
PREFLOP = os.environ["PREFLOP"]


def run(*args):
    return subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=60)


def documents():
    out = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    design = SHARED / "DESIGN.md"
    return out + ([design] if design.exists() else [])


def command_lines():
    """The examples `preflop COMMAND MODEL --on CLUSTER` of the documents."""
    for path in documents():
        for line in path.read_text().splitlines():
            for match in re.finditer(r"(?<![\w-])preflop ((?:estimate|plan|explain|mfu|why-not) [^`\n]*)", line):
                yield path.name, match.group(1).split()


def on_values():
    for name, words in command_lines():
        for flag, value in zip(words, words[1:]):
            if flag == "--on" and value != "...":
                yield name, value
    for path in documents():
        for match in re.finditer(r"\b\d+x([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:/\d+)?\b", path.read_text()):
            if not match.group(0).endswith(".toml"):
                yield path.name, match.group(0)


class Names(unittest.TestCase):
    def known(self, command, name, where):
        done = run(command, name)
        if done.returncode == 0:
            return
        self.assertEqual(done.returncode, 2, f"{where}: {command} {name}: {done.stderr}")
        self.assertNotIn("unknown", done.stderr, where)

    def test_models_of_the_documents(self):
        seen = set()
        for where, words in command_lines():
            for word in words[1:]:
                if word.startswith("-"):
                    break
                if re.fullmatch(r"[a-z][a-z0-9.]*-[a-z0-9.-]+", word) and not word.endswith(".json"):
                    seen.add((word, where))
        for path in documents():
            for match in re.finditer(r"`((?:[\w.-]+/)?[Ll]lama[\w.-]+|gpt[23]?:?[\w=,.-]+\d[\w=,.-]*)`", path.read_text()):
                seen.add((match.group(1), path.name))
        self.assertGreaterEqual(len(seen), 1)
        for name, where in sorted(seen):
            if ":" in name:
                done = run("estimate", name, "--on", "1xh100-sxm", "-q")
                self.assertEqual(done.returncode, 0, f"{where}: {name}: {done.stderr}")
            else:
                self.known("models", name, where)

    def test_clusters_of_the_documents(self):
        seen = sorted(set(on_values()))
        self.assertGreaterEqual(len(seen), 3)
        for where, value in seen:
            if ".." in value or "COUNT" in value or value.endswith(".toml"):
                continue
            done = run("estimate", "gpt:layers=2,hidden=128,heads=2,vocab=512", "--on", value, "-q")
            self.assertNotIn("unknown", done.stderr, f"{where}: --on {value}")
            self.assertEqual(done.returncode, 0, f"{where}: --on {value}: {done.stderr}")

    @unittest.skipUnless((SHARED / "facts/ids.csv").exists(), "no list of collected names beside the project")
    def test_collected_ids(self):
        counts = {"model": 0, "gpu": 0, "platform": 0}
        with open(SHARED / "facts/ids.csv", newline="") as file:
            for row in csv.DictReader(file):
                self.known(row["kind"] + "s", row["canonical_id"], "ids.csv")
                counts[row["kind"]] += 1
        self.assertEqual(counts, {"model": 230, "gpu": 44, "platform": 72})

    def test_a_name_that_nobody_has(self):
        for command in ("models", "gpus", "platforms"):
            done = run(command, "no-such-thing")
            self.assertEqual(done.returncode, 2)
            self.assertIn("unknown", done.stderr)


if __name__ == "__main__":
    unittest.main()
