"""plan of several clusters: what is compared, left out, and said."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args, check=None):
    done = subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


class Offers(unittest.TestCase):
    """Several clusters in one comparison."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def cluster(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def plan(self, *args, code=0):
        done = run("plan", *args, "--json")
        self.assertEqual((done[0], done[2]), (code, ""), args)
        return json.loads(done[1])

    def machines(self, plan):
        return [(p["gpu"], p["platform"], p["gpus_per_node"], p["gpus"]) for p in plan["scaling"]]

    def test_a_cluster_file_stands_beside_others(self):
        path = self.cluster("ours.toml", 'gpus = 16\n[gpu]\nbase = "h100-sxm"\nname = "ours"\ntdp_watts = "500 W"\n')
        for first, second in ((path, "32xh100-sxm"), ("32xh100-sxm", path)):
            plan = self.plan("llama3-8b", "--on", first, "--on", second, "--stack", "megatron")
            self.assertEqual(sorted((p["gpu"], p["gpus"]) for p in plan["scaling"]), [("h100-sxm", 32), ("ours", 16)])
            alone = self.plan("llama3-8b", "--on", path, "--stack", "megatron")
            ours = next(p for p in plan["scaling"] if p["gpu"] == "ours")
            self.assertEqual(ours["step_seconds"], alone["plans"][0]["step"]["seconds"])
        text = run("plan", "llama3-8b", "--on", path, "--on", "32xh100-sxm", "--stack", "megatron")[1]
        self.assertIn("Best of each cluster", text)

    def test_every_cluster_has_to_be_understood(self):
        for wrong in ("64xfoo", "nope.toml", "12..64xh100-sxm", "64xh100-sxm/5"):
            for words in ((wrong, "16xh100-sxm"), ("16xh100-sxm", wrong)):
                code, out, err = run("plan", "llama3-8b", "--on", words[0], "--on", words[1])
                self.assertEqual((code, out), (2, ""), words)
                self.assertTrue(err.startswith("preflop: --on: "), err)

    def test_a_cluster_that_cannot_be_asked_about_is_named(self):
        job = ("llama3-8b", "--on", "72xgb300", "--on", "64xh100-sxm", "--tokens", "100B", "--budget", "100k")
        plan = self.plan(*job)
        self.assertTrue(any(n.startswith("72xgb300 is left out: --budget: no dated price") for n in plan["notes"]))
        self.assertIn("72xgb300 is left out", run("plan", *job)[1])
        self.assertEqual(run("plan", *job[:3], *job[5:])[0], 2)  # alone

    def test_the_same_gpu_on_two_platforms_is_two_clusters(self):
        job = ("llama3-70b", "--stack", "megatron", "--tokens", "100B")
        both = ("--on", "64xgcp-a3-high", "--on", "64xoci-h100")
        plan = self.plan(*job, *both)
        self.assertEqual(self.machines(plan), [("h100-sxm", "gcp-a3-high", 8, 64), ("h100-sxm", "oci-h100", 8, 64)])
        runs = [p["run"]["p50_seconds"] for p in plan["plans"]]
        self.assertEqual(runs, sorted(runs))
        for point in plan["scaling"]:
            alone = self.plan(*job, "--on", f"64x{point['platform']}")
            self.assertEqual(point["step_seconds"], alone["plans"][0]["step"]["seconds"])
            self.assertEqual(point["cost_usd"], alone["plans"][0]["run"]["cost_usd"])
        for e in plan["plans"]:
            alone = self.plan(*job, "--on", f"64x{e['cluster']['platform']}", "--top", "8")
            self.assertIn(e["step"]["seconds"], [other["step"]["seconds"] for other in alone["plans"]])
        turned = self.plan(*job, *both[2:], *both[:2])
        self.assertEqual(turned["plans"], plan["plans"])
        text = run("plan", *job, *both)[1]
        self.assertEqual(text.count("Best of each cluster"), 1)
        for name in ("gcp-a3-high", "oci-h100"):
            self.assertIn(name, text.split("Best of each cluster")[1])
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_one_cluster_by_two_names_is_one(self):
        plan = self.plan("llama3-8b", "--on", "16xh100-sxm", "--on", "16xdgx-h100", "--on", "16xh100-sxm/4")
        self.assertEqual(self.machines(plan), [("h100-sxm", "dgx-h100", 8, 16), ("h100-sxm", "dgx-h100", 4, 16)])
        self.assertIn("16xdgx-h100 is the same cluster as 16xh100-sxm.", plan["notes"])

    def test_an_unknown_time_is_never_best(self):
        for order in (("64xh100-sxm", "64xrtx4090"), ("64xrtx4090", "64xh100-sxm")):
            plan = self.plan("llama3-8b", "--on", order[0], "--on", order[1])
            self.assertEqual([p["gpu"] for p in plan["pareto"]], ["h100-sxm"])
            self.assertEqual({p["cluster"]["gpu"] for p in plan["plans"]}, {"h100-sxm"})
            self.assertTrue(any("64xrtx4090" in n and "scale-up bandwidth" in n for n in plan["notes"]), plan["notes"])
        for on in ("8xrtx4090", "64x80GB"):
            plan = self.plan("llama3-8b", "--on", on)
            self.assertEqual(plan["pareto"], [])
            code, out, _ = run("plan", "llama3-8b", "--on", on)
            self.assertEqual(code, 0)
            self.assertNotIn("Best by time", out)
            self.assertIn("No time is known", out)

    def test_an_unknown_memory_does_not_win(self):
        path = self.cluster("bare.toml", 'gpus = 16\ngpus_per_node = 8\n[gpu]\nname = "bare"\nbf16_flops = "2000 TFLOP/s"\n'
                            'memory_bandwidth = "8 TB/s"\nscaleup_bandwidth = "900 GB/s"\nscaleout_bandwidth = "100 GB/s"\n')
        plan = self.plan("llama3-8b", "--on", path, "--on", "16xh100-sxm")
        self.assertEqual({p["gpu"] for p in plan["scaling"]}, {"h100-sxm"})
        self.assertTrue(any(path in n and "it is left out" in n for n in plan["notes"]), plan["notes"])
        alone = self.plan("llama3-8b", "--on", path)
        self.assertTrue(any("nothing says that its plans fit" in n for n in alone["notes"]), alone["notes"])
        # What has a sheet has a capacity.
        for e in self.plan("llama3-8b", "--on", "16xgaudi3")["plans"]:
            self.assertLess(e["memory"]["peak_device_bytes"], 128e9)

    def test_a_limit_that_cannot_be_checked_is_not_met(self):
        job = ("llama3-8b", "--on", "64xrtx4090", "--tokens", "100B")
        for limit in (("--within", "30d"), ("--budget", "1M", "--price", "1")):
            self.assertEqual(self.plan(*job, *limit, code=3)["plans"], [])
            for brief in ((), ("-q",)):
                code, out, _ = run("plan", *job, *limit, *brief)
                self.assertEqual(code, 3)
                self.assertIn(f"{limit[0]} cannot be checked, for no time is known: rtx4090", " ".join(out.split()))
        plan = self.plan(*job, "--on", "64xh100-sxm", "--within", "30d")
        self.assertEqual({p["gpu"] for p in plan["scaling"]}, {"h100-sxm"})
        self.assertTrue(any("64xrtx4090 is left out" in n for n in plan["notes"]))

    def test_one_comparison_has_one_stack(self):
        plan = self.plan("llama3-8b", "--on", "32..128xh100-sxm", "--on", "32xb200", "--top", "50")
        self.assertEqual({p["recipe"]["stack"].split("@")[0] for p in plan["plans"]}, {"megatron"})
        self.assertTrue(any("one stack, megatron" in n and "torchtitan" in n for n in plan["notes"]), plan["notes"])
        # Every cluster is what it would be alone on that stack.
        for point in plan["scaling"]:
            alone = self.plan("llama3-8b", "--on", f"{point['gpus']}x{point['gpu']}", "--stack", "megatron")
            self.assertEqual(point["step_seconds"], alone["plans"][0]["step"]["seconds"])
        # The largest decides, whatever the order, and where defaults agree there is nothing to say.
        small = self.plan("llama3-8b", "--on", "16..64xh100-sxm", "--top", "50")
        self.assertEqual({p["recipe"]["stack"].split("@")[0] for p in small["plans"]}, {"torchtitan"})
        self.assertFalse(any("stack" in n for n in small["notes"]))
        given = self.plan("llama3-8b", "--on", "64..128xh100-sxm", "--stack", "torchtitan")
        self.assertFalse(any("stack" in n for n in given["notes"]))

    def test_a_default_gives_way_to_a_stack_that_runs_what_is_asked_for(self):
        job = ("llama3-8b", "--on", "64xb200")
        for words in ("--zero 1", "--precision fp8-blockwise", "--offload optimizer", "--moment-dtype fp8",
                      "--cuda-graph full_iteration", "--cp-comm a2a", "--recompute mlp", "--attention cudnn"):
            for command in ("estimate", "plan"):
                with self.subTest(words=words, command=command):
                    code, text, err = run(command, *job, *words.split(), "--json")
                    self.assertEqual(code, 0, err + text[:300])
                    out = json.loads(text)
                    recipe = (out["plans"][0] if command == "plan" else out)["recipe"]
                    self.assertEqual(recipe["stack"].split("@")[0], "megatron")
                    self.assertTrue(any("torchtitan, the default here" in line for line in recipe["assumed"]))
        scans = json.loads(run("estimate", "qwen3-next-80b-a3b", "--on", "64xh100-sxm", "--json")[1])
        self.assertEqual(scans["recipe"]["stack"].split("@")[0], "textbook")
        # What no stack runs is refused as the default refuses it.
        self.assertEqual(run("estimate", *job, "--recompute", "banana")[0], 2)
        self.assertEqual(run("estimate", *job, "--stack", "torchtitan", "--recompute", "mlp")[0], 2)

    def test_what_another_stack_gains_alone_is_said(self):
        said = re.compile(r"(\S+) alone is given (\S+), on which its best plan takes ([0-9.]+) % less time for a token: preflop (.*)\.$")
        lines = 0
        for model, *clusters in (("qwen3-0.6b", "1xh100-sxm", "8xh100-sxm"), ("llama3-8b", "8xh100-sxm", "1xb200"),
                                 ("llama3-8b", "32..128xh100-sxm", "32xb200")):
            job = (model, *(word for on in clusters for word in ("--on", on)))
            plan = self.plan(*job)
            gains = {}
            for point in plan["scaling"]:
                on = f"{point['gpus']}x{point['gpu']}"
                alone = self.plan(model, "--on", on)["plans"][0]
                tokens = point["recipe"]["global_batch"] / alone["recipe"]["global_batch"]
                gains[on] = 100 * (1 - alone["step"]["seconds"] * tokens / point["step_seconds"])
            best = max(gains, key=gains.get)
            found = [m for m in map(said.match, plan["notes"]) if m]
            self.assertEqual(len(found), 1 if gains[best] > 0.5 else 0, (plan["notes"], gains))
            for m in found:
                lines += 1
                self.assertEqual(m[1], best)
                self.assertAlmostEqual(float(m[3]), gains[best], delta=0.051)
                again = self.plan(*shlex.split(m[4])[1:])["plans"][0]
                self.assertEqual(again["recipe"]["stack"], m[2])
                self.assertEqual(again["step"]["seconds"], self.plan(model, "--on", best)["plans"][0]["step"]["seconds"])
        self.assertEqual(lines, 2)
        # On a stack that is given, or where all defaults agree, there is none.
        for words in (("qwen3-0.6b", "--on", "1xh100-sxm", "--on", "8xh100-sxm", "--stack", "torchtitan"),
                      ("llama3-8b", "--on", "16..64xh100-sxm")):
            self.assertFalse(any("alone is given" in n for n in self.plan(*words)["notes"]))

    def test_the_next_of_another_cluster_is_named(self):
        sizes = "--stack megatron --tp 2 --pp 2 --vpp 1 --cp 1 --zero 1 --micro-batch 1 --recompute none".split()
        for on, called in ((("64xh100-sxm", "64xb200"), "gpu"), (("64xgcp-a3-high", "64xoci-h100"), "platform"), (("64xh100-sxm",) * 1, "")):
            for more in ((), sizes):
                plan = self.plan("llama3-8b", *(word for one in on for word in ("--on", one)), *more, "--top", "2")
                line = [w for w in plan["why"] if w.startswith("Against the next")]
                if len(plan["plans"]) < 2:
                    continue
                names = [p["cluster"].get(called) for p in plan["plans"]]
                self.assertEqual(f"Against the next, 64 x {names[1]} at tp" in line[0], names[0] != names[1], line)
                self.assertTrue(not more or not called or names[0] != names[1])

    def test_batches_that_differ_are_said(self):
        plan = self.plan("llama3-8b", "--on", "48xh100-sxm", "--on", "64xh100-sxm")
        batches = {p["gpus"]: p["recipe"]["global_batch"] for p in plan["scaling"]}
        self.assertNotEqual(batches[48], batches[64])
        said = [n for n in plan["notes"] if n.startswith("The batch differs")]
        self.assertEqual(len(said), 1)
        for n in batches.values():
            self.assertIn(str(n), said[0])
        same = self.plan("llama3-8b", "--on", "32xh100-sxm", "--on", "64xh100-sxm")
        self.assertFalse(any("batch differs" in n for n in same["notes"]))

    def test_the_nearest_is_compared_like_with_like(self):
        # 8 GPUs do not hold it; 64 would run it, but for years.
        plan = self.plan("llama3-70b", "--on", "8..64xh100-sxm", "--objective", "gpus", "--tokens", "15T", "--within",
                         "20d", code=3)
        self.assertEqual(plan["nearest"]["cluster"]["gpus"], 64)
        self.assertIn("--within", plan["nearest_why"])
        # Where none of them holds it, the one that is short by least.
        plan = self.plan("llama3-405b", "--on", "8xh100-sxm", "--on", "16xh100-sxm", code=3)
        self.assertEqual(plan["nearest"]["cluster"]["gpus"], 16)

    def test_the_longest_that_is_tried_is_no_maximum(self):
        job = ("llama3-8b", "--on", "64xh100-sxm", "--objective", "seq")
        plan = self.plan(*job)
        longest = plan["plans"][0]["recipe"]["seq"]
        self.assertTrue(any(f"{longest:,}" in n and "longer ones may fit" in n for n in plan["notes"]), plan["notes"])
        self.assertTrue(any("maximum is 8,192" in n for n in plan["notes"]))
        self.assertIn(" 1 sequence of", run("plan", *job)[1])
        short = self.plan("llama3-8b", "--on", "8xa100-40", "--objective", "seq")
        self.assertFalse(any("may fit" in n for n in short["notes"]))


if __name__ == "__main__":
    unittest.main()
