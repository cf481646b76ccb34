"""The command line under a plan gives its numbers again; what a plan says beside them holds for the same question."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args):
    done = subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def plan_of(*args):
    code, out, err = run("plan", *args, "--json")
    assert code == 0, (args, code, err, out[:300])
    return json.loads(out)


def estimate_of(command):
    words = shlex.split(command)
    assert words[:2] == ["preflop", "estimate"], command
    code, out, err = run(*words[1:], "--json")
    assert code == 0, (command, err)
    return json.loads(out)


CLUSTER = """gpus = 64
gpus_per_node = 8
gpu = "h100-sxm"
"""

JOBS = (
    "llama3-8b --on 8xa100-40",
    "llama3-8b --on 64xh100-sxm",
    "llama3-70b --on 256xh100-sxm",
    "llama3-70b --on 256xh100-sxm --objective memory",
    "llama3-70b --on 256xh100-sxm --objective memory --stack megatron --layers-per-stage 19,21,21,19 --pp 4",
    "llama3-8b --on 8xh100-sxm --objective seq --stack megatron",
    "llama3-8b --on 8xh100-sxm --objective micro-batch",
    "llama3-8b --on 8..32xh100-sxm --tokens 100B --objective gpus --within 100d",
    "llama3-8b --on 16xh100-sxm --on 16xa100-80 --tokens 100B --objective cost",
    "llama3-8b --on 16xh100-sxm --tokens 100B --objective energy --price 2 --pue 1.2",
    "llama3-8b --on 16xh100-sxm --objective gpu-hours --mfu 40%",
    "llama3-8b --on 16xh100-sxm --allow-tight --max-memory 60GiB",
    "llama3-8b --on 16xh100-sxm --open precision,optimizer --compile",
    "llama3-8b --on 16xh100-sxm --stack megatron --no-sp --attention fa2 --global-batch 2Mtok --seq 4096",
    "llama3-8b --on 16xh100-sxm --stack megatron --offload optimizer",
    "llama3-8b --on 16xh100-sxm --stack fsdp1",
    "llama3-8b --on 16xh100-sxm --stack megatron-deepspeed",
    "llama3-8b --on 16xh100-sxm --stack megatron-fsdp",
    "llama3-8b --on 16xh100-sxm --stack nanotron",
    "llama3-8b --on 16xh100-sxm --samples 100000 --mean-length 400 --packing on",
    "llama3-8b --on 16xtpu-v5p",
    "llama3-70b --on 16xb300 --tokens 1T --then-seq 131072:10B",
    "llama3-70b --on 128xh100-sxm --tokens 1T --batch-ramp 128:64:300000 --checkpoint-every 1h",
    "gpt2-xl --on 1xh100-sxm --optimizer adamw-8bit",
    "mixtral-8x7b --on 64xh100-sxm",
    "qwen3-235b-a22b --on 72xgb300",
    "deepseek-v3 --on 256xb200 --precision mxfp8",
    "nemotron-h-8b --on 32xh100-sxm",
    "gpt:layers=26,hidden=2048,heads=16,ffn=8192,vocab=50304,seq=2048 --on 16xa100-80 --stack megatron",
)


class Commands(unittest.TestCase):
    def same(self, plan, estimate, of):
        self.assertEqual(plan["memory"]["verdict"], estimate["memory"]["verdict"], of)
        self.assertEqual(plan["memory"]["peak_device_bytes"], estimate["memory"]["peak_device_bytes"], of)
        for part, key in (("step", "seconds"), ("step", "mfu"), ("run", "p50_seconds"), ("run", "cost_usd")):
            both = [(e[part] or {}).get(key) for e in (plan, estimate)]
            self.assertEqual(*both, (part, key, of))

    def test_every_row_is_estimated_again_to_the_same_bits(self):
        rows = 0
        uneven = 0
        for job in JOBS:
            plan = plan_of(*job.split(), "--top", "4")
            for p in plan["plans"]:
                self.same(p, estimate_of(p["command"]), p["command"])
                rows += 1
                uneven += "--layers-per-stage" in p["command"]
            for point in plan["scaling"][:2]:
                e = estimate_of(point["command"])
                self.assertEqual((e["step"] or {}).get("seconds"), point["step_seconds"], point["command"])
        self.assertGreater(rows, 2 * len(JOBS))
        self.assertGreater(uneven, 0)

    def test_files_are_named_as_they_were_given(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = os.path.join(folder, "my cluster.toml")
            with open(cluster, "w", encoding="utf-8") as file:
                file.write(CLUSTER)
            plan = plan_of("llama3-8b", "--on", cluster, "--top", "1")["plans"][0]
            self.assertIn(shlex.quote(cluster), plan["command"])
            self.same(plan, estimate_of(plan["command"]), plan["command"])

    def test_the_text_prints_them_so_that_a_shell_reads_them(self):
        job = ("llama3-8b", "--on", "64xh100-sxm")
        commands = [p["command"] for p in plan_of(*job)["plans"]]
        for words, shown in (((), commands[:1]), (("-v",), commands)):
            text = run("plan", *job, *words)[1]
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            joined = re.sub(r" \\\n +", " ", text)
            printed = [line.strip() for line in joined.splitlines() if line.strip().startswith("preflop estimate")]
            self.assertEqual(printed, shown)
        self.assertNotIn("preflop estimate", run("plan", *job, "-q")[1])


class Sayings(unittest.TestCase):
    def said(self, *args):
        return [" ".join(line.split()) for line in plan_of(*args)["why"]]

    def test_a_neighbour_is_what_the_next_is_where_they_are_one_layout(self):
        # The next differs in zero alone: as much faster or slower as the neighbour in that direction.
        for objective in ("memory", "time"):
            job = ("llama3-70b", "--on", "256xh100-sxm", "--objective", objective)
            why = self.said(*job)
            nexts = [w for w in why if w.startswith("Against the next")]
            more = {re.search(r"\((.*?)\)", w)[1]: w for w in why if w.startswith("More ")}
            layout = nexts[0].removeprefix("Against the next, ").split(":")[0]
            if layout in more:
                same = "the same step" in nexts[0]
                self.assertEqual(same, "as fast" in more[layout], (nexts[0], more[layout]))

    def test_nothing_within_the_limits_is_faster_than_the_best_by_time(self):
        for words in (("--max-memory", "40GiB"), (), ("--allow-tight",)):
            for model, on in (("llama3-70b", "256xh100-sxm"), ("llama3-8b", "64xh100-sxm"), ("mixtral-8x7b", "64xh100-sxm")):
                for line in self.said(model, "--on", on, *words):
                    if line.startswith("More ") and "faster" in line:
                        self.assertRegex(line, "tight|over --max-memory|short of memory|too slow", (words, line))

    def test_what_opening_gains_is_of_the_same_question(self):
        for words in (("--objective", "seq", "--stack", "megatron"), ()):
            plan = plan_of("llama3-8b", "--on", "8xh100-sxm", *words, "--top", "1")
            best = plan["plans"][0]
            for line in plan["opened_would_gain"]:
                if "--open" not in line:
                    continue
                precision = re.search(r"--open precision: (\S+) on", line)[1]
                e = estimate_of(best["command"] + " --precision " + precision)
                self.assertEqual(e["memory"]["verdict"], "fits")
                less = 100 * (1 - e["step"]["seconds"] / best["step"]["seconds"])
                self.assertIn(f"{less:.1f} % less", line)
        # Opened, a plan is at least as fast as its best layout in the precision that is named.
        for model, on in (("llama3-70b", "256xh100-sxm"), ("llama3-8b", "64xb200")):
            shut = plan_of(model, "--on", on, "--top", "1")
            opened = plan_of(model, "--on", on, "--open", "precision", "--top", "1")
            line = [w for w in shut["opened_would_gain"] if "--open" in w][0]
            precision = re.search(r"--open precision: (\S+) on", line)[1]
            said = estimate_of(shut["plans"][0]["command"] + " --precision " + precision)["step"]["seconds"]
            self.assertLessEqual(opened["plans"][0]["step"]["seconds"], said)

    def test_free_switches_are_priced_on_the_winner(self):
        said = 0
        for model, on in (("llama3-8b", "64xh100-sxm"), ("deepseek-v3", "256xb200"), ("llama3-70b", "256xh100-sxm")):
            plan = plan_of(model, "--on", on, "--top", "1")
            best = plan["plans"][0]
            for line in plan["switches_would_gain"]:
                said += 1
                switches = re.match(r"With (.*) the best layout takes", line)[1]
                e = estimate_of(best["command"] + " " + switches)
                self.assertEqual(e["memory"]["verdict"], "fits")
                less = 100 * (1 - e["step"]["seconds"] / best["step"]["seconds"])
                self.assertGreater(less, 0)
                self.assertIn(f"{less:.1f} % less", line)
        self.assertGreater(said, 1)
        # What is given is no advice.
        given = plan_of("llama3-8b", "--on", "64xh100-sxm", "--compile", "--top", "1")["switches_would_gain"]
        self.assertFalse(any("--compile" in line for line in given), given)

    def test_a_switch_that_changes_nothing_is_said(self):
        job = ("llama3-8b", "--on", "64xh100-sxm", "--stack", "megatron", "--tp-overlap", "--tp", "1")
        self.assertTrue(any("--tp-overlap changes nothing" in line for line in self.said(*job)))

    def test_a_given_mfu_is_the_one_that_is_shown(self):
        _, out, _ = run("plan", "llama3-8b", "--on", "8xh100-sxm", "--mfu", "40%")
        text = " ".join(out.split())
        self.assertIn("MFU 40.0 % as given (6n)", text)
        self.assertNotIn("50.7 %", text)
        self.assertNotIn("not broken down", text)
        self.assertIn("every layout takes the same time", text)

    def test_the_median_is_called_so(self):
        _, out, _ = run("plan", "llama3-70b", "--on", "64xh100-sxm", "--tokens", "15T", "-q")
        self.assertRegex(" ".join(out.split()), r"at the median for 15T tokens")
        _, out, _ = run("estimate", "llama3-70b", "--on", "64xh100-sxm", "--tokens", "15T")
        self.assertIn("at the predicted step", out)


class Form(unittest.TestCase):
    def test_rows_that_differ_look_different(self):
        job = ("llama3-70b", "--on", "64xh100-sxm")
        seconds = [p["step"]["seconds"] for p in plan_of(*job)["plans"]]
        text = run("plan", *job)[1]
        cells = re.findall(r"(\d+\.\d+) (?:min|s)  ", text)[: len(seconds)]
        self.assertEqual(len(set(cells)), len(set(seconds)), text)

    def test_the_objective_has_a_column(self):
        job = ("plan", "llama3-8b", "--on", "16xh100-sxm", "--tokens", "100B", "--objective")
        for objective, head in (("cost", "cost"), ("gpu-hours", "GPU-hours"), ("energy", "energy")):
            table = run(*job, objective)[1].split("\n\n")[1]
            self.assertIn(head, table.splitlines()[-6 if len(table.splitlines()) > 6 else 1] + table)
        table = run("plan", "llama3-8b", "--on", "16xh100-sxm", "--objective", "gpu-hours")[1]
        self.assertIn("GPU-h/Btok", table)

    def test_a_small_run_takes_some_energy(self):
        text = run("estimate", "llama3-8b", "--on", "8xh100-sxm", "--tokens", "10M")[1]
        self.assertNotIn("0 MWh,", re.sub(r"[1-9]\d* MWh", "", text))
        self.assertRegex(text, r"[1-9.]+ kWh, 0?\.?[0-9.]+ kg CO2e")

    def test_units_are_units(self):
        text = run("explain", "step.seconds", "llama3-8b", "--on", "8xh100-sxm", "-v")[1]
        self.assertNotRegex(text, r"\d SI\b")

    def test_nothing_is_explained_by_moving_nothing(self):
        job = ("explain", "step.breakdown.offload", "llama3-8b", "--on", "8xh100-sxm")
        for words in (("--stack", "torchtitan", "--offload", "optimizer,params"),
                      ("--stack", "megatron", "--offload", "optimizer", "--tp", "2", "--zero", "1")):
            text = run(*job, *words)[1]
            self.assertIn("host's update", " ".join(text.split()))
            self.assertNotIn("= 0 B", text)

    def test_a_given_tensor_size_leaves_the_cut_of_experts_open(self):
        job = ("deepseek-v3", "--on", "256xb200", "--top", "1")
        free = plan_of(*job)["plans"][0]
        given = plan_of(*job, "--tp", str(free["recipe"]["tp"]))["plans"][0]
        self.assertEqual(given["step"]["seconds"], free["step"]["seconds"])
        self.assertEqual(given["recipe"]["etp"], free["recipe"]["etp"])

    def test_cards_fit_and_say_each_thing_once(self):
        for stack in ("torchtitan", "megatron", "fsdp1", "megatron-fsdp"):
            text = run("stacks", stack)[1]
            self.assertLessEqual(max(map(len, text.splitlines())), 80, stack)
            losses = re.search(r"^  loss +(.*)$", text, re.M)[1].split(", ")
            self.assertEqual(len(losses), len(set(losses)), losses)
        for words in (("gpus", "b200"), ("stacks", "torchtitan"), ("models", "llama3-8b"), ("optimizers", "muon"),
                      ("platforms", "dgx-h100")):
            self.assertEqual(run(*words, "-q")[1].count("\n"), 1, words)

    def test_a_missed_limit_shows_in_the_first_line_too(self):
        code, out, _ = run("estimate", "llama3-8b", "--on", "64xh100-sxm", "--tokens", "1T", "--within", "1d", "-q", "--check")
        self.assertEqual(code, 3)
        self.assertIn("NOT within the limit of 24.0 h", out)


if __name__ == "__main__":
    unittest.main()
