"""Whatever `plan` shows on a stack, a launch file of that stack runs it: every row of every table is exported."""
import json
import os
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]
# The files that start each stack. Slurm's starts another file.
FORMATS = {
    "megatron": ("megatron", "megatron-bridge"),
    "megatron-fsdp": ("megatron", "megatron-bridge"),
    "megatron-deepspeed": ("deepspeed",),
    "torchtitan": ("torchtitan",),
    "nanotron": ("nanotron",),
    "fsdp1": ("accelerate",),
}
MODELS = ("llama3-8b", "gpt2-xl", "gemma2-9b", "olmo2-7b", "smollm3-3b", "mixtral-8x7b", "deepseek-v3")
CLUSTERS = ("8xh100-sxm", "64xh100-sxm", "64xb200", "8xv100-32")
OPTIONS = (
    "--seq 65536", "--max-memory 40GiB", "--objective memory", "--zero 0", "--zero 3", "--hsdp 8", "--no-sp", "--vpp 2",
    "--schedule gpipe", "--recompute full", "--recompute selective", "--offload optimizer", "--offload optimizer,params",
    "--offload activations=4 --recompute none", "--optimizer lion", "--optimizer muon", "--optimizer sgd",
    "--optimizer adafactor", "--optimizer-implementation foreach", "--moment-dtype bf16", "--grad-dtype bf16",
    "--master-dtype fp16", "--precision fp16", "--precision fp32", "--precision fp8-tensorwise",
    "--precision fp8-rowwise", "--precision fp8-delayed", "--precision fp8-blockwise", "--open precision",
    "--cuda-graph full_iteration", "--cuda-graph transformer_engine", "--tp-overlap", "--compile", "--no-dp-overlap",
    "--cp-comm a2a", "--attention unfused", "--loss plain",
)


def run(*words):
    done = subprocess.run([PREFLOP, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class PlanExports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.plan = os.path.join(folder.name, "plan.json")

    def exported(self, stack, *words):
        """How many rows a plan shows; each is written by the first of the stack's formats that takes it."""
        code, out, err = run("plan", *words, "--stack", stack, "--top", "2", "--json")
        self.assertIn(code, (0, 2, 3), err)
        if code == 2:  # the stack does not run it, and says so
            self.assertRegex(err, "^preflop: --")
            return 0
        with open(self.plan, "w", encoding="utf-8") as file:
            file.write(out)
        rows = len(json.loads(out)["plans"])
        for rank in range(1, rows + 1):
            refusals = []
            for form in FORMATS[stack]:
                code, _, err = run("export", self.plan, "--to", form, "--rank", str(rank))
                if code == 0:
                    break
                refusals.append(err)
            self.assertLess(len(refusals), len(FORMATS[stack]), f"{stack} {words} row {rank}: {refusals}")
        return rows

    def test_every_row_of_a_plan(self):
        for stack in FORMATS:
            rows = 0
            for model in MODELS:
                for on in CLUSTERS:
                    with self.subTest(stack=stack, model=model, on=on):
                        rows += self.exported(stack, model, "--on", on)
            with self.subTest(stack=stack):
                self.assertGreater(rows, 15)

    def test_every_row_beside_any_option(self):
        for stack in FORMATS:
            rows = 0
            for options in OPTIONS:
                with self.subTest(stack=stack, options=options):
                    rows += self.exported(stack, "llama3-8b", "--on", "64xh100-sxm", *options.split())
            with self.subTest(stack=stack):
                self.assertGreater(rows, 20)


if __name__ == "__main__":
    unittest.main()
