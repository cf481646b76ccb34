"""What the user brings: --assume for a config.json, cluster files, shape strings; and the documents about them."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFLOP = os.environ["PREFLOP"]
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1536,
         "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 32000,
         "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
TINY = "gpt:layers=2,hidden=128,heads=2,vocab=512"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def config(self, **changes):
        return self.write("config.json", json.dumps({k: v for k, v in {**LLAMA, **changes}.items() if v != "absent"}))

    def run_it(self, *args):
        return subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=60)

    def read(self, *args):
        done = self.run_it("estimate", *args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, parts, *args):
        done = self.run_it("estimate", *args)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)


class AssumeKeys(Case):
    def test_a_missing_key_is_refused_by_name_and_supplied(self):
        path = self.config(vocab_size="absent")
        self.refused(["vocab_size", "--assume"], path, "--on", "1xh100-sxm")
        out = self.read(path, "--on", "1xh100-sxm", "--assume", "vocab_size=32000")
        whole = self.read(self.config(), "--on", "1xh100-sxm")
        self.assertEqual(out["model"]["params_total"], whole["model"]["params_total"])
        self.assertIn("vocab_size=32000 (--assume)", out["recipe"]["assumed"])

    def test_it_wins_over_the_file(self):
        out = self.read(self.config(), "--on", "1xh100-sxm", "--assume", "vocab_size=64000")
        whole = self.read(self.config(), "--on", "1xh100-sxm")
        self.assertEqual(out["model"]["params_total"] - whole["model"]["params_total"], 2 * 32000 * 512)

    def test_several(self):
        out = self.read(self.config(vocab_size="absent", num_hidden_layers="absent"), "--on", "1xh100-sxm", "--assume",
                        "vocab_size=32000", "--assume", "num_hidden_layers=4")
        self.assertEqual(out["model"]["params_total"],
                         self.read(self.config(), "--on", "1xh100-sxm")["model"]["params_total"])

    def test_refusals(self):
        path = self.config()
        on = ["--on", "1xh100-sxm"]
        self.refused(["key and its value"], path, *on, "--assume", "vocab_size")
        self.refused(["given twice"], path, *on, "--assume", "vocab_size=1", "--assume", "vocab_size=2")
        self.refused(["num_experts_of_mine"], path, *on, "--assume", "num_experts_of_mine=8")
        self.refused(["vocab_size"], path, *on, "--assume", "vocab_size=-3")
        self.refused(["vocab_size"], path, *on, "--assume", "vocab_size=many")
        self.refused(["--assume"], "llama3-8b", *on, "--assume", "vocab_size=32000")

    def test_class_defaults_are_said(self):
        out = self.read(self.config(num_key_value_heads="absent"), "--on", "1xh100-sxm")
        said = [line for line in out["recipe"]["assumed"] if line.startswith("num_key_value_heads=8")]
        self.assertEqual(len(said), 1, out["recipe"]["assumed"])


class ClusterFiles(Case):
    def test_a_custom_gpu_and_platform(self):
        path = self.write("mine.toml", """gpus = 16
gpus_per_node = 8
[gpu]
name = "My card"
capacity_bytes = "40 GiB"
bf16_flops = "200 TFLOP/s"
memory_bandwidth = "1000 GB/s"
scaleup_bandwidth = "100 GB/s"
source = "our lab"
[platform]
name = "My rack"
gpus_per_node = 8
scaleout_bandwidth = "25 GB/s"
source = "our lab"
""")
        out = self.read("llama3-8b", "--on", path)
        self.assertEqual(out["memory"]["capacity_bytes"], 40 * 2**30)
        self.assertEqual(out["step"]["peak_flops"], 200e12)
        self.assertEqual((out["cluster"]["gpus"], out["cluster"]["nodes"], out["cluster"]["gpu"]), (16, 2, "my-card"))
        self.assertTrue(any("our lab" in s for s in out["sources"]))

    def test_a_changed_gpu(self):
        path = self.write("less.toml", 'gpus = 8\n[gpu]\nbase = "h100-sxm"\nname = "H100 slow"\n'
                                       'bf16_flops = "700 TFLOP/s"\nsource = "us"\n')
        out = self.read("llama3-8b", "--on", path)
        self.assertEqual(out["step"]["peak_flops"], 700e12)
        self.assertIn("platform=dgx-h100", out["cluster"]["assumed"])
        done = self.run_it("mfu", "llama3-8b", "--on", path, "--tokens-per-second", "40000", "--json")
        self.assertEqual(json.loads(done.stdout)["peak"]["flops"], 700e12)

    def test_errors_name_file_line_and_column(self):
        for text, parts in [
            ("gpus = 8\n[gpu]\nbase = \"h100-sxm\"\nbf16_flop = \"1 TFLOP/s\"\n", [":4:", "bf16_flops"]),
            ("gpus = 8\n[gpu]\nbase = \"h100-sxm\"\nbf16_flops = 700\n", [":4:"]),
            ("gpus = 8\n[gpu]\nbase = \"h100-sxm\"\nbf16_flops = \"700 GB/s\"\n", [":4:", "TFLOP/s"]),
            ("gpus = 8\ngpu = \"h100-sxn\"\n", [":2:", "h100-sxm"]),
            ("gpus = 8\ngpu = \"h100-sxm\n", [":2:"]),
            ("gpu = \"h100-sxm\"\n", ["gpus"]),
            ("gpus = 0\ngpu = \"h100-sxm\"\n", [":1:"]),
        ]:
            with self.subTest(text=text):
                self.refused(["bad.toml", *parts], "llama3-8b", "--on", self.write("bad.toml", text))
        self.refused(["no-such.toml"], "llama3-8b", "--on", str(self.folder / "no-such.toml"))

    def test_the_document_s_example(self):
        text = (ROOT / "docs/cluster-files.md").read_text()
        path = self.write("doc.toml", re.search(r"```toml\n(.*?)```", text, re.S).group(1))
        out = self.read("llama3-8b", "--on", path)
        self.assertEqual(out["cluster"]["gpus"], 64)


class ShapeStrings(Case):
    def test_defaults_are_said(self):
        assumed = self.read(TINY, "--on", "1xh100-sxm")["recipe"]["assumed"]
        for line in ("ffn=512", "kv_heads=2", "head_dim=64", "tied=true", "seq=2048"):
            self.assertTrue(any(a.startswith(line + " (not in the shape string)") for a in assumed), (line, assumed))

    def test_the_document_names_every_key_and_its_examples_work(self):
        text = (ROOT / "docs/shape-strings.md").read_text()
        done = self.run_it("estimate", TINY + ",no_such_key=1", "--on", "1xh100-sxm")
        self.assertEqual(done.returncode, 2)
        keys = self.run_it("estimate", "gpt:layers", "--on", "1xh100-sxm").stderr.split("valid keys: ")[1]
        for key in re.split(r", | or ", keys.strip()):
            self.assertIn(f"`{key}`", text)
        examples = re.findall(r"^preflop (estimate .*)$", text, re.M)
        self.assertEqual(len(examples), 2)
        for line in examples:
            self.assertEqual(self.run_it(*line.split(), "-q").returncode, 0, line)

    def test_the_document_s_defaults(self):
        rows = [[c.strip() for c in line.strip("|").split("|")]
                for line in (ROOT / "docs/shape-strings.md").read_text().splitlines() if line.startswith("| `")]
        values = {"gpt": {}, "llama": {}}
        for keys, gpt, llama, _ in rows:
            for key in re.findall(r"`(\w+)`", keys):
                values["gpt"][key], values["llama"][key] = gpt.strip("`"), llama.strip("`")
        for base in ("gpt", "llama"):
            base_string = f"{base}:layers=2,hidden=512,heads=4,vocab=1024"
            plain = self.read(base_string, "--on", "1xh100-sxm", "--seq", "512")["model"]["params_total"]
            for key in ("tied", "gated", "activation", "norm", "placement", "bias", "head_bias", "qk_norm", "positions",
                        "embedding_norm", "final_norm"):
                if key == "gated" and base == "gpt":
                    continue
                stated = self.read(f"{base_string},{key}={values[base][key]}", "--on", "1xh100-sxm", "--seq", "512")
                self.assertEqual(stated["model"]["params_total"], plain, f"{base} {key}={values[base][key]}")


if __name__ == "__main__":
    unittest.main()
