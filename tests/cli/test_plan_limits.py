"""Limits of the whole run hold under every objective, and under why-not."""
import json
import os
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args):
    return subprocess.run([PREFLOP, *args], capture_output=True, text=True, check=False)


def planned(test, *args):
    done = run("plan", *args, "--json")
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return json.loads(done.stdout)


class Limits(unittest.TestCase):
    job = ("llama3-8b", "--on", "64xh100-sxm", "--stack", "megatron", "--tokens", "100B")

    def test_an_objective_orders_what_meets_the_limit(self):
        fastest = planned(self, *self.job)["plans"][0]["run"]
        days = fastest["p50_seconds"] / 86400
        for objective in ("memory", "micro-batch", "seq"):
            for times in (1.002, 1.05, 1.5):
                with self.subTest(objective=objective, times=times):
                    plan = planned(self, *self.job, "--objective", objective, "--within", f"{days * times:.4f}d")
                    for one in plan["plans"]:
                        if one["run"]:
                            self.assertLessEqual(one["run"]["p50_seconds"], days * times * 86400 * (1 + 1e-6))
            plan = planned(self, *self.job, "--objective", objective, "--budget", f"{fastest['cost_usd'] * 1.01:.0f}$")
            self.assertLessEqual(plan["plans"][0]["run"]["cost_usd"], fastest["cost_usd"] * 1.011)

    def test_a_wider_limit_never_gives_a_shorter_sequence(self):
        known = 0
        for days in ("3.5d", "5d", "9d"):
            seq = planned(self, *self.job, "--objective", "seq", "--within", days)["plans"][0]["recipe"]["seq"]
            self.assertGreaterEqual(seq, known)
            known = seq
        self.assertGreater(known, 8192)

    def test_the_fewest_gpus_of_a_range_are_a_node_apart(self):
        asked = ("llama3-8b", "--tokens", "100B", "--within", "5d", "--stack", "torchtitan")
        plan = planned(self, *asked, "--on", "8..64xh100-sxm", "--objective", "gpus")
        fewest = plan["plans"][0]["cluster"]["gpus"]
        self.assertEqual(fewest % 8, 0)
        self.assertEqual(run("plan", *asked, "--on", f"{fewest}xh100-sxm").returncode, 0)
        self.assertEqual(run("plan", *asked, "--on", f"{fewest - 8}xh100-sxm").returncode, 3)
        self.assertTrue(any("halving" in note for note in plan["notes"]), plan["notes"])
        counts = [c["gpus"] for c in plan["scaling"]]
        self.assertEqual(counts, sorted(counts))


class WhyNot(unittest.TestCase):
    def test_both_have_one_batch(self):
        done = run("why-not", "llama3-8b", "--on", "24xa100-80", "--pp", "4", "--cp", "2", "--micro-batch", "2",
                   "--stack", "torchtitan", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["asked"]["recipe"]["global_batch"], answer["best"]["recipe"]["global_batch"])

    def test_a_limit_that_is_missed_is_said(self):
        asked = ("why-not", "llama3-70b", "--on", "2048xh100-sxm", "--tp", "4", "--pp", "4", "--tokens", "1.4T")
        self.assertIn("--budget $1,000", json.loads(run(*asked, "--budget", "1000", "--json").stdout)["misses"])
        self.assertIn("--budget $1,000", " ".join(run(*asked, "--budget", "1000").stdout.split()))
        self.assertEqual(json.loads(run(*asked, "--budget", "20M$", "--json").stdout)["misses"], "")

    def test_a_plan_that_cannot_go_through_the_run_is_none(self):
        run_asked = ("--tokens", "1T", "--checkpoint-every", "1s")
        estimated = run("estimate", "llama3-8b", "--on", "64xh100-sxm", *run_asked)
        self.assertEqual(estimated.returncode, 2, estimated.stdout)
        done = run("plan", "llama3-8b", "--on", "64xh100-sxm", *run_asked)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--checkpoint-every: a save takes", done.stderr)
        beside = run("plan", "llama3-8b", "--on", "64xh100-sxm", "--on", "8xb200", "--tokens", "1T", "--then-seq",
                     "4194304:10B")
        self.assertEqual(beside.returncode, 0, beside.stderr)
        self.assertIn("8xb200 is left out: --then-seq", beside.stdout.replace("\n", " "))

    def test_a_host_that_is_short_is_said(self):
        cluster = 'gpus = 16\n[gpu]\nbase = "b300"\n[platform]\nbase = "dgx-b300"\nhost_bytes = "{}"\n'
        job = ("llama3.1-405b", "--offload", "optimizer", "--stack", "megatron")
        with tempfile.TemporaryDirectory() as folder:
            short, long = os.path.join(folder, "short.toml"), os.path.join(folder, "long.toml")
            for path, size in ((short, "1 TiB"), (long, "4 TiB")):
                with open(path, "w", encoding="utf-8") as out:
                    out.write(cluster.format(size))
            done = run("plan", *job, "--on", short, "--allow-tight")
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertIn("short of host memory by", done.stdout.replace("\n ", ""))
            self.assertNotIn("tightly", done.stdout)
            why = run("why-not", *job, "--on", short, "--tp", "8", "--pp", "2").stdout
            self.assertIn("short of host memory by", why.replace("\n", " "))
            self.assertIn("GiB of 4096.0 GiB a node", run("estimate", *job, "--on", long, "--tp", "8", "--pp", "2").stdout)


if __name__ == "__main__":
    unittest.main()
