"""preflop mfu: measured speed to utilisation, from the outside."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]
LLAMA = ["llama3-8b", "--on", "8xh100-sxm", "--seq", "8192"]
N = 8030261248
PALM = 6 * N + 12 * 32 * 4096 * 8192


def run(*args):
    return subprocess.run([PREFLOP, "mfu", *args], capture_output=True, text=True, timeout=60)


def read(*args):
    done = run(*args, "--json")
    if done.returncode != 0:
        raise AssertionError(f"{args}: {done.returncode} {done.stderr}")
    return json.loads(done.stdout)


def kinds(out):
    return [c["kind"] for c in out["likely_causes"]]


def text_of(out, kind):
    return next(c["text"] for c in out["likely_causes"] if c["kind"] == kind)


class Arithmetic(unittest.TestCase):
    def test_tokens_per_second(self):
        out = read(*LLAMA, "--tokens-per-second", "56000")
        self.assertEqual(out["schema"], "preflop.mfu/1")
        self.assertEqual(out["measured"]["tokens_per_second_per_gpu"], 7000)
        self.assertEqual(out["peak"]["flops"], 989e12)
        self.assertEqual(out["peak"]["field"], "bf16_flops")
        self.assertTrue(out["peak"]["source"])
        self.assertEqual(out["mfu_convention"], "palm")
        self.assertAlmostEqual(out["mfu"], PALM * 7000 / 989e12, places=12)
        self.assertAlmostEqual(out["conventions"]["6n"]["mfu"], 6 * N * 7000 / 989e12, places=12)
        self.assertAlmostEqual(out["conventions"]["bridge"]["flops_per_token"] / 51.47e9, 1, places=3)
        self.assertAlmostEqual(out["conventions"]["nemo24"]["flops_per_token"] / 57.91e9, 1, places=3)
        self.assertAlmostEqual(out["unexplained"], out["predicted"]["mfu"] - out["mfu"], places=12)
        named = {"palm", "palm-no-embedding", "6n", "6n-no-embedding", "8n", "bridge", "nemo24", "maxtext", "maxtext-causal", "korthikanti", "narayanan",
                 "hfu"}
        self.assertLessEqual(named, set(out["conventions"]))

    def test_the_four_ways_to_say_it_agree(self):
        batch = ["--global-batch", "64"]
        per_gpu = 64 * 8192 / 10 / 8
        total = read(*LLAMA, *batch, "--tokens-per-second", str(64 * 8192 / 10))
        each = [read(*LLAMA, *batch, "--tokens-per-second-per-gpu", repr(per_gpu)),
                read(*LLAMA, *batch, "--step-seconds", "10"),
                read(*LLAMA, *batch, "--tflops-per-gpu", repr(PALM * per_gpu / 1e12) + "@palm")]
        self.assertAlmostEqual(total["measured"]["step_seconds"], 10, places=9)
        for other in each:
            self.assertAlmostEqual(other["mfu"] / total["mfu"], 1, places=12)
        self.assertEqual(each[1]["measured"]["given"], "step_seconds")
        self.assertEqual(each[2]["measured"]["given_convention"], "palm")

    def test_a_published_run(self):
        # Megatron-Bridge 25.09: Llama 3 8B, 725 TFLOP/s and 14,079 tokens/s on each H100.
        out = read(*LLAMA, "--tflops-per-gpu", "725@bridge")
        self.assertAlmostEqual(out["measured"]["tokens_per_second_per_gpu"] / 14079, 1, places=2)

    def test_keys_are_sorted_and_bytes_repeat(self):
        a, b = (run(*LLAMA, "--tokens-per-second", "56000", "--json").stdout for _ in range(2))
        self.assertEqual(a, b)
        pairs = json.loads(a, object_pairs_hook=list)
        self.assertEqual([k for k, _ in pairs], sorted(k for k, _ in pairs))

    def test_hfu_counts_what_the_recipe_recomputes(self):
        base = read(*LLAMA, "--tp", "1", "--recompute", "none", "--tokens-per-second", "56000")["conventions"]
        full = read(*LLAMA, "--tp", "1", "--recompute", "full", "--tokens-per-second", "56000")["conventions"]
        self.assertGreater(full["hfu"]["mfu"], 1.3 * base["hfu"]["mfu"])
        self.assertEqual(full["palm"], base["palm"])


class Peaks(unittest.TestCase):
    def test_sparse_peak_is_recognised(self):
        out = read(*LLAMA, "--tokens-per-second", "56000", "--peak", "1979e12")
        self.assertEqual(out["peak"]["flops"], 989e12)
        self.assertEqual(out["peak"]["given_flops"], 1979e12)
        self.assertEqual(kinds(out)[0], "sparse_peak")
        text = text_of(out, "sparse_peak")
        self.assertIn("1979 TFLOP/s is the bf16 sparse headline of h100-sxm", text)
        self.assertIn("dense is 989", text)
        self.assertAlmostEqual(out["conventions"]["palm"]["mfu_of_given_peak"], PALM * 7000 / 1979e12, places=12)
        self.assertTrue(any(k["sparse"] and k["gpu"] == "h100-sxm" for k in out["peak"]["given_is"]))

    def test_dense_peak_given_is_silent(self):
        for peak in ("989e12", "989T", "989.5e12"):
            out = read(*LLAMA, "--tokens-per-second", "56000", "--peak", peak)
            self.assertEqual(out["peak"]["flops"], 989e12)
            self.assertIsNone(out["conventions"]["palm"]["mfu_of_given_peak"])
            self.assertNotIn("sparse_peak", kinds(out))

    def test_peak_of_another_gpu(self):
        out = read(*LLAMA, "--tokens-per-second", "56000", "--peak", "312e12")
        self.assertIn("a100", text_of(out, "other_peak"))
        self.assertEqual(out["peak"]["flops"], 989e12)

    def test_own_number(self):
        out = read(*LLAMA, "--tokens-per-second", "56000", "--peak", "777e12")
        self.assertEqual((out["peak"]["flops"], out["peak"]["field"], out["peak"]["rung"]), (777e12, "given", "given"))
        self.assertIn("989", text_of(out, "given_peak"))

    def test_gpu_without_a_bf16_peak(self):
        done = run("gpt2", "--on", "8xv100-32", "--tokens-per-second", "1000", "--precision", "bf16")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bf16 does not run on v100-32", done.stderr)
        self.assertIn("fp16", done.stderr)
        out = read("gpt2", "--on", "8xv100-32", "--tokens-per-second", "100000")  # fp16, the default of such chips
        self.assertEqual(out["peak"]["flops"], 125e12)


class Over(unittest.TestCase):
    def test_tokens_of_a_node(self):
        out = read(*LLAMA, "--tokens-per-second-per-gpu", "56000")
        self.assertGreater(out["mfu"], 1)
        self.assertEqual(kinds(out)[0], "over_peak")
        self.assertIn("divided by 8", text_of(out, "per_node"))

    def test_non_causal_count_at_long_sequence(self):
        out = read("llama3-8b", "--on", "8xh100-sxm", "--seq", "131072", "--tokens-per-second-per-gpu", "4500")
        self.assertGreater(out["mfu"], 1)
        self.assertLess(out["conventions"]["bridge"]["mfu"], 1)
        self.assertIn("causal mask", text_of(out, "non_causal"))

    def test_another_gpu(self):
        # nanoGPT's meter: an H100 run against the 312 of an A100.
        out = read("gpt2", "--on", "8xa100-80", "--tokens-per-second-per-gpu", "380000")
        self.assertGreater(out["mfu"], 1)
        self.assertIn("other_gpu", kinds(out))

    def test_micro_step(self):
        out = read(*LLAMA, "--global-batch", "512", "--tp", "1", "--step-seconds", "0.9")
        self.assertIn("micro_step", kinds(out))

    def test_one_gpu_for_all(self):
        out = read(*LLAMA, "--tokens-per-second", "7000")
        self.assertIn("times 8", text_of(out, "per_gpu"))

    def test_nonsense(self):
        done = run(*LLAMA, "--tokens-per-second", "1e18")
        self.assertEqual(done.returncode, 2)
        self.assertIn("times its peak", done.stderr)


class Text(unittest.TestCase):
    def test_eighty_columns(self):
        for args in (["--tokens-per-second", "56000"], ["--tokens-per-second", "56000", "-v"],
                     ["--tokens-per-second-per-gpu", "56000", "--peak", "1979e12"], ["--tokens-per-second", "0.001"]):
            text = run(*LLAMA, *args).stdout
            self.assertTrue(text)
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
            for name in ("palm", "6n-no-embedding", "bridge", "nemo24", "narayanan", "hfu"):
                self.assertIn("\n  " + name + " ", text)
            self.assertIn("Predicted", text)

    def test_it_names_peak_source_and_method(self):
        text = " ".join(run(*LLAMA, "--tokens-per-second", "56000").stdout.split())
        self.assertIn("989 TFLOP/s dense, bf16, one h100-sxm", text)
        self.assertIn("kernels, links and schedule", text)
        self.assertIn("points unexplained", text)
        self.assertIn("Likely causes", text)

    def test_quiet(self):
        self.assertEqual(run(*LLAMA, "--tokens-per-second", "56000", "-q").stdout.count("\n"), 1)

    def test_unknown_rates_say_so(self):
        out = read("llama3-8b", "--on", "8xrtx6000ada", "--tokens-per-second", "10000")
        self.assertIsNone(out["predicted"]["mfu"])
        self.assertIsNone(out["unexplained"])
        self.assertIn("memory bandwidth", text_of(out, "no_prediction"))


class Document(unittest.TestCase):
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/conventions.md").read_text()

    def test_its_table_is_what_the_command_prints(self):
        block = self.text.split("```console\n")[1].split("```")[0]
        command, table = block.split("\n...\n")[:2]
        words = command.split()
        self.assertEqual(words[:3], ["$", "./preflop", "mfu"])
        done = run(*words[3:])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(table + "\n", done.stdout)

    def test_it_explains_every_convention(self):
        for name in read(*LLAMA, "--tokens-per-second", "56000")["conventions"]:
            self.assertIn(f"| `{name}` |", self.text)


class BadInput(unittest.TestCase):
    def refused(self, part, *args):
        done = run(*args)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(part, done.stderr)

    def test_refusals(self):
        self.refused("no measured speed", *LLAMA)
        self.refused("contradicts --tokens-per-second", *LLAMA, "--tokens-per-second", "1", "--step-seconds", "1")
        self.refused("0 is no speed", *LLAMA, "--tokens-per-second", "0")
        self.refused("--tokens-per-second", *LLAMA, "--tokens-per-second", "fast")
        self.refused("--tokens-per-second", *LLAMA, "--tokens-per-second", "-5")
        self.refused("add --global-batch", *LLAMA, "--step-seconds", "3")
        self.refused("does not say what its FLOPs count", *LLAMA, "--tflops-per-gpu", "400")
        self.refused("did you mean bridge", *LLAMA, "--tflops-per-gpu", "400@brigde")
        self.refused("count differently", *LLAMA, "--tflops-per-gpu", "400@megatron")
        self.refused("no speed of a GPU", *LLAMA, "--tflops-per-gpu", "400e12@bridge")
        self.refused("no GPU's peak", *LLAMA, "--tokens-per-second", "50000", "--peak", "1979")
        self.refused("no speed to compare", "llama3-8b", "--on", "1x80GB", "--tokens-per-second", "50000")
        self.refused("no model is given", "--on", "8xh100-sxm", "--tokens-per-second", "50000")
        self.refused("unknown flag", *LLAMA, "--tokens-per-second", "50000", "--mfu", "40%")

    def test_a_recipe_files_mfu_does_not_replace_the_prediction(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.toml"
            path.write_text('mfu = "40%"\nseq = 8192\n')
            out = read("llama3-8b", "--on", "8xh100-sxm", "--recipe", str(path), "--tokens-per-second", "56000")
            self.assertEqual(out["predicted"]["method"], "kernels and links")


if __name__ == "__main__":
    unittest.main()
