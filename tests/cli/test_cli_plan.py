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
        job = ["plan", "llama3-8b", "--on", "64xh100-sxm", "--json"]
        shut = json.loads(run(*job)[1])
        self.assertEqual({p["recipe"]["precision"] for p in shut["plans"]}, {"bf16"})
        self.assertEqual(len(shut["opened_would_gain"]), 1)
        self.assertIn("--open precision: fp8", shut["opened_would_gain"][0])
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


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.plan = os.path.join(self.folder, "plan.json")
        code, _, err = run("estimate", "llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "4", "--vpp", "5", "-o", self.plan)
        self.assertEqual((code, err), (0, ""))

    def test_scripts_are_shell(self):
        for form in ("megatron", "slurm"):
            code, out, err = run("export", self.plan, "--to", form)
            self.assertEqual((code, err), (0, ""))
            path = os.path.join(self.folder, form + ".sh")
            with open(path, "w", encoding="utf-8") as file:
                file.write(out)
            self.assertEqual(subprocess.run(["bash", "-n", path]).returncode, 0)
            if shutil.which("shellcheck"):
                self.assertEqual(subprocess.run(["shellcheck", path]).returncode, 0)

    def test_python_is_python(self):
        for form in ("megatron-bridge",):
            code, out, err = run("export", self.plan, "--to", form)
            self.assertEqual((code, err), (0, ""))
            compile(out, form, "exec")

    def test_python_assigns_known_options_only(self):
        table = pathlib.Path(__file__).resolve().parents[2] / "data/launch_options.csv"
        with open(table, encoding="utf-8", newline="") as file:
            known = {(r["format"], r["option"]): r for r in csv.DictReader(file)}
        jobs = (("megatron-bridge", "llama3-70b", "megatron", "--tp 4 --pp 4 --vpp 5 --recompute selective"),
                ("megatron-bridge", "deepseek-v3", "megatron", "--tp 2 --pp 8 --ep 8 --recompute moe_act,mla_up_proj"),
                ("megatron-bridge", "llama3-8b", "megatron-fsdp", "--zero 3"),
                ("torchtitan", "llama3-8b", "torchtitan", "--tp 2 --pp 2 --cp 2"))
        for form, model, stack, words in jobs:
            code, out, err = run("estimate", model, "--on", "256xh100-sxm", "--stack", stack, *words.split(), "--json")
            self.assertEqual((code, err), (0, ""))
            path = os.path.join(self.folder, "job.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(out)
            code, out, err = run("export", path, "--to", form)
            self.assertEqual((code, err), (0, ""), model)
            assigned = 0
            for node in ast.walk(ast.parse(out)):
                if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
                    continue
                option = ast.unparse(node.targets[0]).split(".", 1)[1]
                if option == "model":  # the model's own, read off its config
                    continue
                row = known.get((form, option))
                self.assertIsNotNone(row, f"{form}: {option}")
                assigned += 1
                if not isinstance(node.value, (ast.Constant, ast.List)):
                    continue
                value = ast.literal_eval(node.value)
                if row["type"] in ("int", "bool", "str", "float"):
                    self.assertEqual(type(value).__name__, row["type"], option)
                if row["choices"] and isinstance(value, str):
                    self.assertIn(value, row["choices"].split("|"), option)
            self.assertGreater(assigned, 8, model)

    def test_from_a_script_is_the_same_estimate(self):
        script = os.path.join(self.folder, "run.sh")
        self.assertEqual(run("export", self.plan, "--to", "megatron", "-o", script)[0], 0)
        code, out, err = run("estimate", "--from", script, "--json")
        self.assertEqual((code, err), (0, ""))
        with open(self.plan, encoding="utf-8") as file:
            first = json.load(file)
        self.assertEqual(json.loads(out)["step"]["seconds"], first["step"]["seconds"])

    def test_an_option_that_is_not_read_is_named_once(self):
        script = os.path.join(self.folder, "typo.sh")
        self.assertEqual(run("export", self.plan, "--to", "megatron", "-o", script)[0], 0)
        with open(script, encoding="utf-8") as file:
            text = file.read()
        with open(script, "w", encoding="utf-8") as file:
            file.write(text.rstrip() + " --tensor-model-parallel-sise 8 --foo-bar 1 --save here\n")
        code, out, err = run("estimate", "--from", script, "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("not read: --foo-bar, --tensor-model-parallel-sise", err)
        self.assertEqual(json.loads(out)["schema"], "preflop.estimate/1")

    def test_a_plan_of_a_config_is_exported_beside_it(self):
        config, plan = os.path.join(self.folder, "config.json"), os.path.join(self.folder, "of_config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 4096,
                       "num_attention_heads": 16, "num_hidden_layers": 8, "vocab_size": 32000,
                       "max_position_embeddings": 4096}, file)
        self.assertEqual(run("estimate", config, "--on", "8xh100-sxm", "--tp", "2", "-o", plan)[0], 0)
        code, out, err = run("export", plan, "--to", "megatron")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("--num-layers 8", " ".join(out.split()))
        os.remove(config)
        code, _, err = run("export", plan, "--to", "megatron")
        self.assertEqual(code, 2)
        self.assertIn("there is no file", err)

    def test_compare_lists_what_differs(self):
        other = os.path.join(self.folder, "other.json")
        run("estimate", "llama3-70b", "--on", "64xh100-sxm", "--tp", "4", "--pp", "4", "-o", other)
        code, out, _ = run("compare", self.plan, other)
        self.assertEqual(code, 0)
        self.assertIn("recipe.tp", out)
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()))
        self.assertEqual(run("compare", self.plan, self.plan)[1], "A and B are the same.\n")

    def test_compare_shows_key_and_both_values(self):
        files = {}
        for name, words in {
            "plan": ("plan", "llama3-8b", "--on", "8xh100-sxm"),
            "stages": ("plan", "llama3-8b", "--on", "16xh100-sxm", "--pp", "4"),
            "estimate": ("estimate", "llama3-8b", "--on", "8xh100-sxm", "--tp", "4"),
            "long": ("estimate", "llama3-70b", "--on", "512xh100-sxm", "--tp", "8", "--pp", "16", "--stack", "megatron",
                     "--layers-per-stage", "4,5,5,5,5,5,5,5,5,5,5,5,5,5,6,5", "--global-batch", "2048"),
        }.items():
            files[name] = os.path.join(self.folder, name + ".json")
            self.assertEqual(run(*words, "-o", files[name])[0], 0, name)
        for a in files:
            for b in files:
                if a == b:
                    continue
                code, out, _ = run("compare", files[a], files[b], "-v")
                self.assertEqual(code, 0)
                self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
                flat = " ".join(out.split())
                for line in json.loads(run("compare", files[a], files[b], "--json")[1])["lines"]:
                    wide, under = (" ".join(f.format(**line).split()) for f in ("{path} {a} {b}", "{path} A {a} B {b}"))
                    # A word longer than a line is broken.
                    self.assertTrue(wide in flat or under.replace(" ", "") in flat.replace(" ", ""), (a, b, line))

    def test_no_reason_is_that_a_layout_has_another_ordinal(self):
        for words in (("llama3-8b", "--on", "8xh100-sxm", "--vpp", "3"), ("llama3-8b", "--on", "16xh100-sxm"),
                      ("llama3-8b", "--on", "8xh100-sxm", "--vpp", "3", "--stack", "megatron", "--pp", "2"),
                      ("gpt2-xl", "--on", "1xh100-sxm")):
            for more in ((), ("--json",), ("-v",)):
                self.assertNotIn("ordinal", run("plan", *words, *more)[1], words)
            if "--vpp" in words:
                out = " ".join(run("plan", *words)[1].split())
                self.assertRegex(out, r"^No plan found: no layout is legal\. --vpp: \d+ pipeline chunks do not divide")

    def test_why_not_knows_the_limit_of_memory(self):
        asked = ("why-not", "llama3-8b", "--on", "8xh100-sxm", "--tp", "2", "--stack", "megatron")
        free = json.loads(run(*asked, "--json")[1])
        self.assertIn(free["verdict"], ("slower", "best"))
        code, out, err = run(*asked, "--max-memory", "12GiB", "--json")
        self.assertEqual((code, err), (0, ""))
        limited = json.loads(out)
        self.assertEqual(limited["verdict"], "short of memory")
        self.assertIn("--max-memory 12.0 GiB", limited["because"])
        code, out, _ = run(*asked, "--max-memory", "60GiB", "--json")
        under = json.loads(out)
        self.assertLessEqual(under["asked"]["memory"]["peak_device_bytes"], 60 * 2**30)
        self.assertEqual(run(*asked, "--max-memory", "much")[0], 2)


if __name__ == "__main__":
    unittest.main()
