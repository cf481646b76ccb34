"""plan and why-not: answers and exit codes."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args, check=None):
    done = subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


class Plan(unittest.TestCase):
    def test_the_best_plan_is_an_estimate_that_fits(self):
        code, out, err = run("plan", "llama3-70b", "--on", "256xh100-sxm", "--tokens", "1T", "--json", "--top", "3")
        self.assertEqual((code, err), (0, ""))
        plan = json.loads(out)
        self.assertEqual(plan["schema"], "preflop.plan/1")
        space = plan["space"]
        self.assertEqual(space["space"], space["pruned"] + space["checked"])
        self.assertGreaterEqual(space["checked"], space["priced"])
        self.assertIn(len(plan["plans"]), (1, 2, 3))  # at most that many, of different shapes
        seconds = [p["step"]["seconds"] for p in plan["plans"]]
        self.assertEqual(seconds, sorted(seconds))
        for p in plan["plans"]:
            self.assertEqual(p["schema"], "preflop.estimate/1")
            self.assertEqual(p["memory"]["verdict"], "fits")

    def test_the_winner_is_what_estimate_says_of_its_layout(self):
        _, out, _ = run("plan", "llama3-8b", "--on", "16xh100-sxm", "--stack", "megatron", "--json", "--top", "1")
        best = json.loads(out)["plans"][0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(out)
            code, again, err = run("estimate", "--from", path, "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(again)["step"]["seconds"], best["step"]["seconds"])
        self.assertEqual(json.loads(again)["memory"]["peak_device_bytes"], best["memory"]["peak_device_bytes"])

    def test_the_impossible_says_what_comes_nearest(self):
        code, out, _ = run("plan", "llama3-405b", "--on", "8xa100-40")
        self.assertEqual(code, 3)
        self.assertIn("No plan found", out)
        self.assertIn("short of memory by", out)

    def test_what_is_needed_of_memory_is_one_figure(self):
        # What the verdict goes by: of the table, of the estimate's first line, of what is to spare or short.
        gib = lambda n: f"{n / 2**30:.1f}"
        for stack, objective in (("megatron", "time"), ("megatron", "memory"), ("torchtitan", "time")):
            job = ("plan", "llama3-70b", "--on", "64xh100-sxm", "--stack", stack, "--objective", objective)
            plan = json.loads(run(*job, "--json")[1])
            memory = [p["memory"] for p in plan["plans"]]
            needed = [gib(m["capacity_bytes"] - m["margin_bytes"]) for m in memory]
            rows = [line.split() for line in run(*job)[1].splitlines() if line.split()[:1] in ([str(i)] for i in range(1, 9))]
            self.assertEqual(len(rows), len(needed))
            for row, each in zip(rows, needed):
                self.assertIn(each, row)
            if objective == "memory":
                self.assertEqual(needed, sorted(needed, key=float))
            first = " ".join(run(*shlex.split(plan["plans"][0]["command"])[1:], "-q")[1].split())
            self.assertIn(f"{needed[0]} GiB needed at most", first)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bare.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('gpus = 16\n[gpu]\nname = "bare"\nbf16_flops = "2000 TFLOP/s"\nmemory_bandwidth = "8 TB/s"\n')
            job = ("llama3-8b", "--on", path, "--stack", "megatron")
            text = run("plan", *job)[1]
            command = shlex.split(json.loads(run("plan", *job, "--json")[1])["plans"][0]["command"])
            first = " ".join(run(*command[1:], "-q")[1].split())
        self.assertIn(re.search(r"([0-9.]+) GiB needed", first)[1], text)

    def test_flags_change_what_a_file_says(self):
        # What follows from the sizes in the file is made anew: what the flags leave is what the same recipe is by flags.
        refused = 0
        with tempfile.TemporaryDirectory() as folder:
            for model, words in (("llama3-70b", ("--stack", "megatron")), ("llama3-70b", ("--stack", "megatron", "--objective", "memory")),
                                 ("mixtral-8x7b", ("--stack", "megatron")), ("llama3-8b", ("--stack", "torchtitan"))):
                path = os.path.join(folder, "plan.json")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(run("plan", model, "--on", "64xh100-sxm", *words, "--top", "1", "--json")[1])
                with open(path, encoding="utf-8") as file:
                    old = json.load(file)["plans"][0]["recipe"]
                for flags in (("--on", "128xh100-sxm"), ("--on", "128xa100-80"), ("--tp", "1"), ("--tp", "8"), ("--pp", "1"),
                              ("--pp", "8"), ("--cp", "2"), ("--pp", "4", "--vpp", "1"), ("--tp", "2", "--on", "128xh100-sxm")):
                    code, out, err = run("estimate", "--from", path, *flags, "--json")
                    if code == 2:  # a value of the file that stands on its own, and does not go with the flag's
                        self.assertRegex(err, r"^preflop: --(?!dp|schedule|layers|sp|etp)[a-z-]+: [^\n]+; [^\n]+\n$", (model, words, flags))
                        refused += 1
                        continue
                    self.assertEqual((code in (0, 3), err), (True, ""), (model, words, flags))
                    e = json.loads(out)
                    new, given = e["recipe"], dict(zip(flags[::2], flags[1::2]))
                    for key in ("tp", "pp", "cp", "ep", "zero", "micro_batch", "stack", "recompute"):
                        self.assertEqual(str(new[key]), given.get("--" + key, str(old[key])), (model, words, flags, key))
                    self.assertEqual(new["dp"] * new["tp"] * new["pp"] * new["cp"], e["cluster"]["gpus"], (model, words, flags))
                plan = run("plan", "--from", path, "--on", "128xh100-sxm", "--json", "--top", "1")
                self.assertEqual(plan[0], 0, plan[2])
                # What cannot be is said of a flag, with what would do.
                code, _, err = run("estimate", "--from", path, "--dp", "3")
                self.assertEqual(code, 2)
                self.assertRegex(err, r"^preflop: --(dp|global-batch): [^\n]+; [^\n]+\n$")
        self.assertLess(refused, 6)

    def test_one_plan_is_listed_once(self):
        # Nothing is sharded where one rank holds each state, nothing recomputed where no layer has the part.
        jobs = (("llama3-8b", "--on", "8xh100-sxm", "--tp", "8"), ("llama3-8b", "--on", "8xh100-sxm", "--tp", "8", "--objective", "memory"),
                ("mamba2-2.7b", "--on", "8xh100-sxm"), ("mixtral-8x7b", "--on", "32xh100-sxm", "--dp", "1", "--objective", "memory"))
        for job in jobs:
            plan = json.loads(run("plan", *job, "--stack", "megatron", "--top", "8", "--json")[1])
            self.assertEqual(len(plan["plans"]), 8, job)
            rows = [(p["step"]["seconds"], p["memory"]["peak_device_bytes"], tuple(p["recipe"][k] for k in ("tp", "pp", "vpp", "ep", "etp", "micro_batch")))
                    for p in plan["plans"]]
            self.assertEqual(len(set(rows)), len(rows), job)
            for p in plan["plans"]:
                r = p["recipe"]
                if r["dp"] * r["cp"] == 1 and (r["ep"] * r["etp"] == r["tp"] or "mixtral" not in job[0]):
                    self.assertEqual(r["zero"], 0, job)
        # A stage that is given is kept.
        given = json.loads(run("plan", *jobs[0], "--stack", "megatron", "--zero", "1", "--json")[1])
        self.assertEqual({p["recipe"]["zero"] for p in given["plans"]}, {1})

    def test_where_nothing_is_legal_the_reason_leads(self):
        for words, said in ((("--tp", "7"), "tp 7"), (("--stack", "foundry", "--tp", "2"), "no tensor parallelism")):
            code, out, _ = run("plan", "llama3-8b", "--on", "8xh100-sxm", *words)
            self.assertEqual(code, 3)
            first = " ".join(out.split("\n\n")[0].split())
            self.assertIn("no layout is legal", first)
            self.assertIn(said, first)

    def test_of_several_clusters_what_no_layout_mends_leads(self):
        for refused, said in ((("--attention", "fa3"), "fa3"), (("--stack", "foundry", "--tp", "2"), "no tensor parallelism")):
            job = ("plan", "llama3-8b", "--on", "16..64xa100-80", *refused)
            code, out, err = run(*job)
            if code == 2:
                self.assertIn(said, err)
                continue
            self.assertEqual(code, 3)
            self.assertIn(said, " ".join(out.split("\n\n")[0].split()))

    def test_headline_json_and_limits_go_by_the_median_run(self):
        job = ("plan", "llama3-8b", "--on", "64xh100-sxm", "--tokens", "100B", "--top", "1")
        e = json.loads(run(*job, "--json")[1])["plans"][0]
        r, gpus = e["run"], e["cluster"]["gpus"]
        self.assertAlmostEqual(r["gpu_hours"], r["p50_seconds"] * gpus / 3600, delta=1e-6 * r["gpu_hours"])
        self.assertNotEqual(r["p50_seconds"], r["expected_seconds"])
        first = " ".join(run(*job, "-q")[1].split())
        self.assertIn(f"{round(r['gpu_hours']):,} GPU-hours, ${round(r['cost_usd']):,}", first)
        for limit, unit, has in (("--within", "s", r["p50_seconds"]), ("--budget", "", r["cost_usd"])):
            for times, code in ((1.001, 0), (0.999, 3)):
                self.assertEqual(run(*job, limit, f"{has * times:.3f}{unit}")[0], code, (limit, times))

    def test_objectives_compare_the_runs_that_are_shown(self):
        for objective, key in (("time", "p50_seconds"), ("gpu-hours", "gpu_hours"), ("cost", "cost_usd")):
            plan = json.loads(run("plan", "llama3-8b", "--on", "32xh100-sxm", "--on", "64xa100-80", "--tokens", "100B",
                                  "--objective", objective, "--json", "--top", "1")[1])
            self.assertEqual(plan["plans"][0]["run"][key], min(p[key] for p in plan["scaling"]), objective)

    def test_a_larger_batch_is_named_where_the_batch_was_assumed(self):
        job = ("plan", "llama3-8b", "--on", "1024xh200", "--tokens", "15T", "--json", "--top", "1")
        gains = json.loads(run(*job)[1])["opened_would_gain"]
        self.assertIn("With --global-batch 1024", gains[0])
        given = json.loads(run(*job, "--global-batch", "512")[1])["opened_would_gain"]
        self.assertFalse(any("--global-batch" in line for line in given), given)

    def test_a_missed_limit_says_by_how_much(self):
        job = ("plan", "llama3-8b", "--on", "8..32xh100-sxm", "--tokens", "1T")
        for words, said in ((("--within", "1d"), "--within 24.0 h"), (("--budget", "1000"), "--budget $1,000"),
                            (("--budget", "12.5"), "--budget $12.5"),
                            (("--max-memory", "4GiB"), "--max-memory 4.0 GiB")):
            code, out, _ = run(*job, *words)
            self.assertEqual(code, 3, words)
            self.assertIn(said, " ".join(out.split()))
            nearest = json.loads(run(*job, *words, "--json")[1])
            self.assertIn(said, nearest["nearest_why"])
            # Time is missed by least on the most GPUs.
            if words[0] == "--within":
                self.assertEqual(nearest["nearest"]["cluster"]["gpus"], 32)

    def test_the_front_counts_gpus_time_and_money(self):
        plan = json.loads(run("plan", "llama3-8b", "--on", "8..64xh100-sxm", "--tokens", "100B", "--json")[1])
        points, front = plan["scaling"], plan["pareto"]
        self.assertTrue(all(p["cost_usd"] > 0 and p["expected_seconds"] > 0 for p in points))
        keys = ("gpus", "p50_seconds", "cost_usd")
        for p in front:
            self.assertFalse(any(all(q[k] < p[k] for k in keys) for q in points))

    def test_fewest_gpus_within_a_time(self):
        code, out, _ = run("plan", "llama3-8b", "--on", "8..64xh100-sxm", "--tokens", "100B", "--objective", "gpus",
                           "--within", "20d", "--json", "--top", "1")
        self.assertEqual(code, 0)
        plan = json.loads(out)
        fewest = plan["plans"][0]["cluster"]["gpus"]
        self.assertEqual(fewest, min(point["gpus"] for point in plan["scaling"]))

    def test_numerics_change_only_where_they_are_open(self):
        job = ["plan", "llama3-8b", "--on", "64xb200", "--json"]
        shut = json.loads(run(*job)[1])
        self.assertEqual({p["recipe"]["precision"] for p in shut["plans"]}, {"bf16"})
        self.assertEqual(len(shut["opened_would_gain"]), 1)
        self.assertRegex(shut["opened_would_gain"][0], "--open precision: (fp8|mxfp8|nvfp4)")
        opened = json.loads(run(*job, "--open", "precision")[1])
        self.assertLess(opened["plans"][0]["step"]["seconds"], shut["plans"][0]["step"]["seconds"])
        self.assertNotEqual(opened["plans"][0]["recipe"]["precision"], "bf16")
        self.assertEqual(opened["opened_would_gain"], [])
        for words in (["--open", "speed"], ["--open", "precision", "--precision", "bf16"], ["--open", "precision,"]):
            code, _, err = run(*job, *words)
            self.assertEqual(code, 2, words)
            self.assertTrue(err.startswith("preflop: --open: "), err)

    def test_bad_words_are_refused(self):
        for args in (["--objective", "speed"], ["--within", "20"], ["--top", "0"], ["--objective", "gpus"],
                     ["--within", "20d"], ["--max-memory", "80"]):
            code, _, err = run("plan", "llama3-8b", "--on", "8xh100-sxm", *args)
            self.assertEqual(code, 2, args)
            self.assertTrue(err.startswith("preflop: "), args)

    def test_why_not_says_illegal_short_or_slower(self):
        for args, word in ((["--tp", "3"], "Illegal"), (["--tp", "1", "--pp", "1"], "Does not fit"), (["--tp", "8", "--pp", "8"], "Slower")):
            code, out, _ = run("why-not", "llama3-70b", "--on", "64xh100-sxm", "--stack", "megatron", *args)
            self.assertEqual(code, 0, args)
            self.assertTrue(out.startswith(word), out)

    def why_not(self, *args):
        code, out, err = run("why-not", "llama3-70b", "--on", "64xh100-sxm", *args, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_why_not_compares_on_one_stack_with_the_plan_of_that_stack(self):
        for asked, stack in ((("--tp", "1", "--pp", "16"), None), (("--tp", "8", "--vpp", "4"), None),
                             (("--tp", "1", "--zero", "1"), None), (("--zero", "3"), None),
                             (("--tp", "4", "--pp", "2"), "megatron"), (("--tp", "8"), "torchtitan")):
            given = ("--stack", stack) if stack else ()
            answer = self.why_not(*asked, *given)
            best, layout = answer["best"], answer["asked"]
            self.assertEqual(best["recipe"]["stack"], layout["recipe"]["stack"], asked)
            code, out, err = run("plan", "llama3-70b", "--on", "64xh100-sxm", "--stack", best["recipe"]["stack"], "--json")
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(out)["plans"][0]["step"]["seconds"], best["step"]["seconds"], asked)
            self.assertEqual(best["memory"]["verdict"], "fits")
            self.assertEqual(answer["tight"], layout["memory"]["verdict"] == "tight", asked)
            self.assertEqual(answer["verdict"] == "slower", layout["step"]["seconds"] > best["step"]["seconds"], asked)

    def test_why_not_says_of_a_layout_that_it_fits_only_tightly(self):
        code, out, _ = run("why-not", "llama3-8b", "--on", "8xh100-sxm", "--stack", "megatron", "--tp", "1",
                           "--micro-batch", "4", "--recompute", "none")
        self.assertEqual(code, 0)
        self.assertIn("in its best form, which fits only tightly:", " ".join(out.split()))

    def test_illegal_names_the_size_that_is_asked_about(self):
        for model, args, said in (("llama3-8b", ("--tp", "64"), "--tp: 64 does not divide the 32 query heads"),
                                  ("nemotron-h-56b", ("--tp", "16"), "--tp: 16 does not divide the 8 groups"),
                                  ("mixtral-8x7b", ("--ep", "16"), "--ep: 16 does not divide the 8 experts"),
                                  ("llama3-8b", ("--stack", "megatron", "--zero", "3"), "--zero: stack megatron"),
                                  ("llama3-8b", ("--tp", "7"), "--on: 64 GPUs are not a multiple of tp 7")):
            for command, code in (("why-not", 0), ("plan", 3)):
                done = run(command, model, "--on", "64xh100-sxm", *args)
                self.assertEqual(done[0], code, args)
                self.assertIn(said, " ".join(done[1].split()))


if __name__ == "__main__":
    unittest.main()
