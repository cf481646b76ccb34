"""TPUs on the command line: the stack that runs there, plans, refusals, and rows that stand apart."""
import json
import os
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args):
    done = subprocess.run([PREFLOP, *args], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def answer(*args):
    code, out, err = run(*args, "--json")
    assert code == 0, err
    return json.loads(out)


class Tpu(unittest.TestCase):
    def test_an_estimate_of_nothing_but_names(self):
        for tpu in ("tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x"):
            out = answer("estimate", "llama2-7b", "--on", f"256x{tpu}")
            self.assertEqual(out["recipe"]["stack"], "maxtext")
            self.assertEqual(out["recipe"]["attention"], "splash")
            step = out["step"]
            self.assertLess(step["low_seconds"], step["seconds"])
            self.assertLess(step["seconds"], step["high_seconds"])
            self.assertTrue(0.3 < step["mfu"] < 0.9, (tpu, step["mfu"]))

    def test_a_plan(self):
        out = answer("plan", "llama3-70b", "--on", "256xtpu-v5p", "--seq", "4096", "--top", "3")
        self.assertEqual(len(out["plans"]), 3)
        for plan in out["plans"]:
            self.assertEqual(plan["recipe"]["stack"], "maxtext")
            self.assertEqual((plan["recipe"]["pp"], plan["recipe"]["cp"]), (1, 1))
            self.assertTrue(plan["memory"]["fits"])

    def test_what_does_not_run_there_is_refused_by_one_sentence(self):
        for args, said in (
            (("llama2-7b", "--on", "256xtpu-v5p", "--stack", "megatron"), "megatron does not run on tpu-v5p"),
            (("llama2-7b", "--on", "8xtpu-v6e", "--stack", "torchtitan"), "torchtitan does not run on tpu-v6e"),
            (("llama2-7b", "--on", "8xmi300x", "--stack", "maxtext"), "maxtext does not run on mi300x"),
            (("llama2-7b", "--on", "256xtpu-v5p", "--recompute", "minimal_offloaded"), "minimal_offloaded"),
            (("llama2-7b", "--on", "256xtpu-v5p", "--recompute", "custom"), "custom"),
            (("llama2-7b", "--on", "256xtpu-v5p", "--attention", "fa3"), "fa3 does not run on tpu-v5p"),
        ):
            for command in ("estimate", "plan"):
                code, out, err = run(command, *args)
                self.assertEqual((code, out), (2, ""), (command, args, out))
                self.assertIn(said, err)
                self.assertEqual(err.count("\n"), 1, err)
        for args, said in ((("llama2-7b", "--on", "256xtpu-v5p", "--pp", "2"), "has no pipelines"),
                           (("mixtral-8x7b", "--on", "64xtpu-v5p"), "mixture of experts on stack")):
            code, _, err = run("estimate", *args)
            self.assertEqual(code, 2)
            self.assertIn(said, err)
            code, out, _ = run("plan", *args)
            self.assertEqual(code, 3)
            self.assertIn(said, out)

    def test_a_slice_is_a_domain_of_the_cluster(self):
        # Four slices average gradients over the data-centre network: slower than one torus of as many chips.
        args = ("estimate", "maxtext-64b", "--recompute", "full", "--tp", "1", "--seq", "2048", "--micro-batch", "2")
        apart = answer(*args, "--on", "1024xtpu-v5e", "--global-batch", "2048", "--hsdp", "256")["step"]
        one = answer(*args, "--on", "256xtpu-v5e", "--global-batch", "512")["step"]
        self.assertGreater(apart["seconds"], one["seconds"])

    def test_no_format_of_gpu_software_takes_its_plan(self):
        plan = os.path.join(tempfile.mkdtemp(), "plan.json")
        self.assertEqual(run("plan", "llama2-7b", "--on", "256xtpu-v5p", "-o", plan)[0], 0)
        for name in ("megatron", "megatron-bridge", "torchtitan", "deepspeed", "accelerate", "nanotron", "slurm"):
            code, out, err = run("export", plan, "--to", name)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"{name} does not run a plan of stack maxtext", err)

    def test_the_catalogue_shows_the_stack(self):
        code, out, _ = run("stacks", "maxtext")
        self.assertEqual(code, 0)
        for word in ("splash", "save_qkv_proj", "qkv_proj_offloaded", "minimal_with_context"):
            self.assertIn(word, out)
        for line in out.splitlines()[1:]:
            self.assertLessEqual(len(line), 80, line)

    def test_rows_stand_apart(self):
        out = answer("validate")
        apart = {(s["source"], s["convention"]): s for s in out["summary_apart"] if s["metric"] == "time.step_seconds"}
        for chip, rows in (("tpu-v4", 4), ("tpu-v5e", 18), ("tpu-v5p", 13), ("h100-sxm", 5)):
            self.assertEqual(apart[f"maxtext on {chip}", "maxtext"]["n"], rows)
        self.assertEqual(apart["all TPUs", "converted"]["n"], 35)
        # The naive baseline is beaten on every chip of ten rows or more.
        for s in out["summary_apart"]:
            if s["naive_mape"] is not None and s["source"] != "all":
                self.assertLess(s["mape"], s["naive_mape"], s["source"])
        for s in out["summary"]:
            self.assertFalse(s["source"].startswith("maxtext"), s["source"])
        for e in out["rows"]:
            if e["source"] == "maxtext" and e["metric"] == "time.step_seconds" and not e["skipped"]:
                self.assertLess(e["low"], e["predicted"])
                self.assertLess(e["predicted"], e["high"])


if __name__ == "__main__":
    unittest.main()
