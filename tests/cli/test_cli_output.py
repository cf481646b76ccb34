"""What the commands print: the page's numbers, the JSON contract, 80 columns, exit codes, explanations."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]
LLAMA = ["llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "2"]

# preflop.estimate/1, key by key; [] stands for every item of a list.
ESTIMATE_KEYS = """
schema
model.name model.params_total model.params_active model.params_embedding model.params_vision
cluster.gpu cluster.platform cluster.gpus cluster.gpus_per_node cluster.nodes cluster.assumed
recipe.assumed recipe.stack recipe.seq recipe.micro_batch recipe.global_batch recipe.tp recipe.pp recipe.vpp recipe.cp recipe.ep
recipe.etp recipe.dp recipe.sp recipe.zero recipe.hsdp recipe.schedule recipe.layers_per_stage recipe.precision recipe.optimizer
recipe.weight_dtype recipe.grad_dtype recipe.master_dtype recipe.moment_dtype recipe.recompute recipe.offload recipe.loss
recipe.attention recipe.lora recipe.quantize recipe.freeze recipe.tokens recipe.mfu
memory.verdict memory.fits memory.margin_bytes memory.capacity_bytes memory.peak_allocated_bytes memory.peak_reserved_bytes
memory.low_allocated_bytes memory.high_allocated_bytes memory.low_reserved_bytes memory.high_reserved_bytes
memory.peak_device_bytes memory.low_device_bytes memory.high_device_bytes memory.peak_stage memory.peak_moment
memory.host_bytes_per_node memory.checkpoint_bytes memory.way_out
memory.stages[].stage memory.stages[].layers memory.stages[].moment memory.stages[].moments.init
memory.stages[].weights memory.stages[].gradients memory.stages[].optimizer memory.stages[].activations memory.stages[].logits
memory.stages[].buffers memory.stages[].transients memory.stages[].allocated memory.stages[].reserved memory.stages[].context
memory.stages[].device
compute.flops_per_token.model compute.flops_per_token.hardware compute.flops_per_token.six_n compute.flops_per_token.attention
compute.convention compute.conventions.palm compute.conventions.6n
step.seconds step.low_seconds step.high_seconds step.tokens_per_second step.tokens_per_second_per_gpu step.mfu step.mfu_convention
step.peak_flops step.hfu
step.breakdown.gemm step.breakdown.attention step.breakdown.memory_bound step.breakdown.logits step.breakdown.recompute
step.breakdown.launch step.breakdown.tp_comm step.breakdown.cp_comm step.breakdown.ep_comm step.breakdown.pp_comm
step.breakdown.dp_comm step.breakdown.offload step.breakdown.imbalance step.breakdown.bubble step.breakdown.optimizer
step.breakdown.other
run.tokens run.steps run.ideal_seconds run.expected_seconds run.p10_seconds run.p50_seconds run.p90_seconds run.gpu_hours
run.cost_usd run.energy_kwh run.co2_kg run.losses
sources warnings
""".split()
NAPKIN_KEYS = ["cluster_flops_per_second", "expected_high_seconds", "expected_low_seconds", "flops", "gpu_hours", "ideal_seconds",
               "schema", "state_bytes"]
TERMS = ["weights", "gradients", "optimizer", "activations", "logits", "buffers", "transients"]


def run(*args, **options):
    return subprocess.run([PREFLOP, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **options)


def values(node, path):
    """Every value at a path; a missing key raises."""
    if not path:
        return [node]
    head, rest = path[0], path[1:]
    if head.endswith("[]"):
        return [v for item in node[head[:-2]] for v in values(item, rest)]
    return values(node[head], rest)


class Output(unittest.TestCase):
    def text(self, *args, code=0):
        done = run(*args)
        self.assertEqual((done.returncode, done.stderr), (code, b""), args)
        return done.stdout.decode("ascii")

    def json(self, *args, code=0):
        return json.loads(self.text(*args, "--json", code=code))

    def test_napkin(self):
        self.assertEqual(self.json("napkin", "--params", "7e9")["state_bytes"], 112e9)
        page = ["napkin", "--params", "70e9", "--tokens", "1.4T", "--on", "2048xh100-sxm", "--mfu", "40%"]
        n = self.json(*page)
        self.assertEqual(sorted(n), NAPKIN_KEYS)
        self.assertEqual(n["state_bytes"], 1.12e12)
        self.assertEqual(n["flops"], 5.88e23)
        self.assertEqual(n["cluster_flops_per_second"], 2048 * 989e12 * 0.4)
        self.assertAlmostEqual(n["ideal_seconds"], 7.258e5, delta=50)
        self.assertAlmostEqual(n["expected_low_seconds"] / 86400, 9.2, delta=0.05)
        self.assertAlmostEqual(n["expected_high_seconds"] / 86400, 10.9, delta=0.05)
        text = self.text(*page)
        for words in ["1.12 TB", "5.88e23 FLOP", "8.102e17 FLOP/s", "8.4 days", "9.2 days to 10.9 days"]:
            self.assertIn(words, text)

    def test_every_key_of_the_contract(self):
        for args in [["estimate", *LLAMA, "--tokens", "15T"], ["estimate", *LLAMA], ["estimate", "llama3-8b", "--on", "1x80GB"],
                     ["estimate", *LLAMA, "--mfu", "40%"]]:
            e = self.json(*args)
            self.assertEqual(e["schema"], "preflop.estimate/1")
            for path in ESTIMATE_KEYS:
                with self.subTest(path=path):
                    self.assertTrue(values(e, path.split(".")))

    def test_sums_and_meaning(self):
        e = self.json("estimate", *LLAMA, "--tokens", "15T")
        for stage in e["memory"]["stages"]:
            self.assertEqual(sum(stage[term] for term in TERMS), stage["allocated"])
            self.assertEqual(max(stage["moments"].values()), stage["allocated"])
            self.assertEqual(stage["moments"][stage["moment"]], stage["allocated"])
        peak = e["memory"]["stages"][e["memory"]["peak_stage"]]
        self.assertEqual(e["memory"]["margin_bytes"], e["memory"]["capacity_bytes"] - e["memory"]["high_allocated_bytes"] - peak["context"])
        self.assertAlmostEqual(sum(v for v in e["step"]["breakdown"].values() if v), e["step"]["seconds"], places=9)
        self.assertEqual(e["compute"]["flops_per_token"]["six_n"], 6 * e["model"]["params_total"])
        self.assertAlmostEqual(e["run"]["ideal_seconds"], e["run"]["steps"] * e["step"]["seconds"], places=3)
        self.assertIsNone(e["memory"]["host_bytes_per_node"])
        self.assertLessEqual(e["memory"]["low_device_bytes"], e["memory"]["peak_device_bytes"])
        self.assertGreaterEqual(e["memory"]["high_device_bytes"], e["memory"]["peak_device_bytes"])
        self.assertIn(e["memory"]["verdict"], ["fits", "tight", "no"])

    def test_json_bytes(self):
        text = self.text("estimate", *LLAMA, "--json")
        value = json.loads(text)
        # Python prints these values as sorted keys and shortest numbers, too.
        self.assertEqual(json.dumps(value, sort_keys=True, indent=2).replace(" ", "").replace("\n", ""), text.replace(" ", "").replace("\n", ""))
        self.assertEqual(text, self.text("estimate", *LLAMA, "--json"))

    def test_what_does_not_fit_has_a_way_out(self):
        # one change; more GPUs where no layout of these fits
        for args in (["llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--micro-batch", "4", "--recompute", "none"],
                     ["llama3-70b", "--on", "8xh100-sxm", "--tp", "8"], ["llama3-8b", "--on", "1xt4"],
                     ["deepseek-v3", "--on", "8xh100-sxm", "--ep", "8"],
                     ["llama3-405b", "--on", "256xh100-sxm", "--tp", "2", "--recompute", "none"],
                     ["gpt3-175b", "--on", "128xa100-80", "--tp", "1", "--micro-batch", "4"]):
            self.assertIn(b"What would make it fit\n  ", run("estimate", *args).stdout, args)
            way_out = json.loads(run("estimate", *args, "--json").stdout)["memory"]["way_out"]
            self.assertGreater(len(way_out), 0, args)
            for way in way_out:
                self.assertGreater(way["freed_bytes"], 0, args)
                flags = [word for word in way["change"].split() if word.startswith("--")]
                self.assertEqual(len(flags), len(set(flags)), way["change"])

    def test_texts_fit_80_columns(self):
        for args in [["estimate", *LLAMA, "--tokens", "15T"], ["estimate", *LLAMA, "-v"], ["estimate", "llama3-8b", "--on", "1x80GB"],
                     ["estimate", "llama3.1-405b", "--on", "1024xh100-sxm", "--tp", "8", "--pp", "16", "-v"], ["--help"],
                     ["estimate", "--help"], ["explain", "--help"], ["napkin", "--help"], ["models"], ["models", "-v"], ["models", "llama3-70b"],
                     ["gpus"], ["gpus", "h100-sxm"], ["platforms"], ["platforms", "dgx-h100"], ["stacks"], ["stacks", "megatron"],
                     ["explain", "--list"], ["explain", "step.seconds", *LLAMA], ["explain", "memory.allocated", *LLAMA, "-v"],
                     ["napkin", "--params", "70e9", "--tokens", "1.4T", "--on", "2048xh100-sxm"]]:
            with self.subTest(args=args):
                lines = run(*args).stdout.decode().splitlines()
                self.assertTrue(lines)
                self.assertLessEqual(max(map(len, lines)), 80, max(lines, key=len))
                self.assertNotIn("\x1b", "".join(lines))

    def test_explanations_end_in_the_number(self):
        e = self.json("estimate", *LLAMA)
        peak = e["memory"]["stages"][e["memory"]["peak_stage"]]
        for term, value, words in [("memory.activations", peak["activations"], ["kept input", "source: TransformerEngine"]),
                                   ("memory.optimizer", peak["optimizer"], ["master weight", "4 B x ceil("]),
                                   ("compute.flops_per_token.model", e["compute"]["flops_per_token"]["model"], ["attention"]),
                                   ("step.seconds", e["step"]["seconds"], ["gemm", "micro-batches", "source:"]),
                                   ("memory.capacity_bytes", e["memory"]["capacity_bytes"], ["source: "])]:
            with self.subTest(term=term):
                text = self.text("explain", term, *LLAMA)
                shown = re.match(re.escape(term) + r" = (\S+)", text).group(1)
                self.assertEqual(float(shown), value)
                for word in words:
                    self.assertIn(word, text)
                tree = self.json("explain", term, *LLAMA)
                self.assertEqual(tree["value"], value)
                self.assertEqual(tree["tree"]["value"], value)

    def test_utilisation_of_long_sequences_says_what_a_mask_skips(self):
        job = ["estimate", "llama3-8b", "--on", "64xh100-sxm", "--stack", "megatron", "--tp", "8", "--cp", "8"]
        for seq, said in (("1048576", True), ("131072", True), ("8192", False)):
            text = " ".join(self.text(*job, "--seq", seq, "--recompute", "full").split())
            self.assertEqual("of the useful ones for keys that a causal mask skips" in text, said, seq)

    def test_products_of_sizes_multiply_out(self):
        def leaves(tree):
            if "FLOP" in tree.get("unit", "") and " / tokens x " in tree.get("detail", ""):
                yield tree["detail"], tree["value"]
            for part in tree.get("inputs", []):
                yield from leaves(part)

        def number(factor):
            inner = re.fullmatch(r"\((.*)\)", factor)
            if inner:
                return sum(map(number, inner.group(1).split(" + ")))
            value, _, by = re.search(r"[0-9.]+(/[0-9]+)?", factor).group(0).partition("/")
            return float(value) / float(by or 1)

        seen = set()
        for job in ("llama3-8b --on 8xh100-sxm", "deepseek-v3 --on 64xh100-sxm --ep 8 --stack megatron",
                    "gpt-oss-120b --on 64xh100-sxm --ep 8 --stack megatron",
                    "nemotron-h-8b --on 8xh100-sxm --stack megatron",
                    "qwen3-next-80b-a3b --on 64xh100-sxm --stack textbook",
                    "llama3-8b --on 8xh100-sxm --stack textbook --recompute full --seq 4096",
                    "deepseek-v2-lite --on 8xh100-sxm --stack textbook"):
            words = job.split()
            seq = words[words.index("--seq") + 1] if "--seq" in words else None
            for term in ("model", "hardware"):
                out = self.json("explain", "compute.flops_per_token." + term, *words)
                tokens = float(seq or self.json("estimate", *words)["recipe"]["seq"])
                for detail, value in leaves(out["tree"]):
                    product = 1 / tokens
                    for factor in detail.replace(" / tokens", "").split(" x "):
                        product *= number(factor)
                    self.assertAlmostEqual(product / value, 1, places=3, msg=(job, detail, value))
                    seen.add(detail.split(" / ")[0])
        self.assertGreater(len(seen), 30)

    def test_every_listed_term_has_a_line(self):
        terms = self.json("explain", "--list")["terms"]
        self.assertGreater(len(terms), 50)
        self.assertEqual([t["term"] for t in terms if not t["says"]], [])

    def test_check(self):
        fits, short = ["estimate", *LLAMA, "-q"], ["estimate", "llama3-70b", "--on", "8xh100-sxm", "-q"]
        self.text(*fits, "--check")
        self.assertIn("DOES NOT FIT", self.text(*short))
        self.assertEqual(run(*short, "--check").returncode, 3)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            self.assertEqual(self.text("estimate", *LLAMA, "-o", str(at / "e.json")), "")
            self.assertEqual((at / "e.json").read_text(), self.text("estimate", *LLAMA, "--json"))
            self.text("estimate", *LLAMA, "-o", str(at / "e.txt"))
            self.assertEqual((at / "e.txt").read_text(), self.text("estimate", *LLAMA))
            (at / "r.toml").write_text('model = "llama3-70b"\non = "64xh100-sxm"\ntp = 4\npp = 2\nlayers_per_stage = [41, 39]\n')
            recipe = self.json("estimate", "--recipe", str(at / "r.toml"), "--tp", "8")["recipe"]
            self.assertEqual((recipe["tp"], recipe["pp"], recipe["layers_per_stage"]), (8, 2, [41, 39]))
            (at / "q.json").write_text(json.dumps({"model": "llama3-70b", "on": "64xh100-sxm", "tp": 8, "pp": 2}))
            self.assertEqual(self.text("request", str(at / "q.json")), self.text("estimate", *LLAMA, "--json"))

    def test_models_count(self):
        m = self.json("models", "meta-llama/Meta-Llama-3-8B")
        self.assertEqual((m["id"], m["params_total"], m["counts"]), ("llama3-8b", 8030261248, "main"))
        self.assertGreaterEqual(len(self.json("gpus")["gpus"]), 44)

    def test_plain_things(self):
        self.assertRegex(self.text("--version"), r"^preflop \d+\.\d+\.\d+, data of \d{4}-\d\d-\d\d\n$")
        self.assertIn("preflop estimate", self.text("--help"))
        self.assertEqual(run("request", "/nowhere").returncode, 2)
        timing = run("estimate", *LLAMA, "-q", "--timing")
        self.assertRegex(timing.stderr.decode(), "^preflop: reading .* in all .*\n$")
        self.assertEqual(self.text("estimate", *LLAMA, "-q").count("FITS"), 1)

    def test_a_pipe_closed_early(self):
        for args in [["explain", "step.seconds", *LLAMA, "-v"], ["models", "--json"], ["gpus", "--json"]]:
            done = subprocess.run(f"{PREFLOP} {' '.join(args)} | head -c 1; exit ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""), args)

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PREFLOP, "gpus"], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"cannot be written", done.stderr)

    def test_the_text_names_every_type_of_the_numerics(self):
        for words in (("--precision", "fp8-tensorwise"), ("--precision", "mxfp8", "--stack", "torchtitan"), ("--precision", "fp16"),
                      ("--precision", "fp8-delayed", "--stack", "megatron"), ("--weight-dtype", "fp32", "--stack", "textbook"),
                      ("--moment-dtype", "bf16", "--stack", "megatron"), ()):
            job = ("estimate", "llama3-8b", "--on", "8xb200", "--tp", "1", *words)
            recipe = self.json(*job)["recipe"]
            text = " ".join(self.text(*job).split())
            said = text[text.index("Numerics"):text.index("Memory use")]
            for key, what in (("precision", "compute"), ("weight_dtype", "weights"), ("grad_dtype", "gradients"),
                              ("moment_dtype", "moments")):
                self.assertIn(f"{recipe[key]} {what}", said, words)


if __name__ == "__main__":
    unittest.main()
