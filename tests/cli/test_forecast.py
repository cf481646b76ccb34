"""The forecast of a run on the command line."""
import json
import os
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]
RUN = ["estimate", "llama3-8b", "--on", "256xh100-sxm", "--tp", "2", "--mfu", "40%", "--tokens", "1T"]


def run(*args):
    return subprocess.run([PREFLOP, *args], capture_output=True, text=True)


class Forecast(unittest.TestCase):
    def test_same_seed_same_bytes_another_seed_another_spread(self):
        a, b = run(*RUN, "--json", "--seed", "7"), run(*RUN, "--json", "--seed", "7")
        self.assertEqual(a.stdout, b.stdout)
        other = json.loads(run(*RUN, "--json", "--seed", "8").stdout)["run"]
        mine = json.loads(a.stdout)["run"]
        self.assertNotEqual(mine["p90_seconds"], other["p90_seconds"])
        self.assertEqual(mine["expected_seconds"], other["expected_seconds"])

    def test_losses_and_ideal_sum_to_the_expected_time(self):
        r = json.loads(run(*RUN, "--json").stdout)["run"]
        total = r["ideal_seconds"] + sum(r["losses"].values())
        self.assertAlmostEqual(total / r["expected_seconds"], 1, places=12)
        self.assertEqual(r["ideal_seconds"], json.loads(run(*RUN, "--json").stdout)["step"]["seconds"] * r["steps"])
        self.assertLess(r["p10_seconds"], r["p90_seconds"])

    def test_limits_are_checked(self):
        self.assertEqual(run(*RUN, "--check", "--within", "300d", "--budget", "100M$").returncode, 0)
        self.assertEqual(run(*RUN, "--check", "--within", "1h").returncode, 3)
        self.assertEqual(run(*RUN, "--check", "--budget", "10$").returncode, 3)
        self.assertEqual(run(*RUN, "--within", "1h").returncode, 0)

    def test_an_explanation_is_the_number(self):
        value = json.loads(run(*RUN, "--json").stdout)["run"]
        for term in ("expected_seconds", "p50_seconds", "cost_usd", "energy_kwh", "losses.lost_work"):
            of = value
            for part in term.split("."):
                of = of[part]
            e = json.loads(run("explain", "run." + term, *RUN[1:], "--json").stdout)
            self.assertEqual(e["value"], of, term)

    def test_what_is_assumed_is_said_and_what_is_given_is_not(self):
        assumed = json.loads(run(*RUN, "--json").stdout)["recipe"]["assumed"]
        self.assertTrue(any(a.startswith("price=") for a in assumed))
        r = json.loads(run(*RUN, "--json", "--price", "2.25", "--mtbf", "5h").stdout)
        self.assertFalse(any(a.startswith(("price=", "mtbf=")) for a in r["recipe"]["assumed"]))
        self.assertEqual(r["recipe"]["price"], 2.25)
        self.assertEqual(r["recipe"]["mtbf"], "5h")

    def test_own_prices(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "prices.csv"), "w") as f:
                f.write("gpu,kind,usd,date,source\nh100-sxm,on-demand,1.5,2026-11,our contract\n")
            r = json.loads(run(*RUN, "--json", "--data-dir", folder).stdout)
            self.assertAlmostEqual(r["run"]["cost_usd"], r["run"]["gpu_hours"] * 1.5)

    def test_files_by_their_ending(self):
        with tempfile.TemporaryDirectory() as folder:
            for ending, begins in ((".svg", "<svg"), (".html", "<!doctype html>"), (".md", "# llama3-8b")):
                path = os.path.join(folder, "x" + ending)
                for command in ("estimate", "report"):
                    r = run(command, *RUN[1:], "-o", path)
                    self.assertEqual((r.returncode, r.stdout), (0, ""), r.stderr)
                    with open(path) as f:
                        self.assertTrue(f.read().startswith(begins), ending)
            self.assertEqual(run("report", *RUN[1:]).returncode, 2)
            self.assertEqual(run(*RUN, "--json", "-o", os.path.join(folder, "x.svg")).returncode, 2)

    def test_bad_input_exits_with_two(self):
        for more in (["--mtbf", "0s"], ["--price", "-1"], ["--checkpoint-every", "1s"], ["--start", "soon"]):
            r = run(*RUN, *more)
            self.assertEqual((r.returncode, r.stdout), (2, ""), more)
            self.assertIn(more[0], r.stderr)


if __name__ == "__main__":
    unittest.main()
