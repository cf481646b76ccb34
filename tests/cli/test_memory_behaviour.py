"""What users and their estimators forget or get wrong about memory, asked of the command line.

Each test is a behaviour reported in public issues of training frameworks; the expectation is derived in it.
"""
import csv
import io
import json
import os
import re
import subprocess
import unittest

PREFLOP = os.environ["PREFLOP"]
TERMS = ["weights", "gradients", "optimizer", "activations", "logits", "buffers", "transients"]
SMALL = "llama:layers=8,hidden=1024,heads=16,kv_heads=16,ffn=4096,vocab=32000"


def run(*args):
    return subprocess.run([PREFLOP, "estimate", *args, "--json"], capture_output=True, text=True)


def memory(*args):
    out = run(*args)
    if out.returncode != 0:
        raise AssertionError(f"{args}: {out.stderr}")
    return json.loads(out.stdout)["memory"]


def stage(*args, at=0):
    return memory(*args)["stages"][at]


def refusal(*args):
    out = run(*args)
    assert out.returncode == 2, (args, out.returncode, out.stdout[:200])
    return out.stderr


class Shapes(unittest.TestCase):
    def test_a_vocabulary_is_padded_as_megatron_pads_it(self):
        # 151,669 words on tp 4 become the next multiple of 128 x 4; what is shared out is the padded table
        model = "llama:layers=2,hidden=1024,heads=16,kv_heads=16,ffn=4096,tied=false,vocab="
        odd = stage(model + "151669", "--on", "4xh100-sxm", "--tp", "4", "--stack", "megatron")
        even = stage(model + "152064", "--on", "4xh100-sxm", "--tp", "4", "--stack", "megatron")
        self.assertEqual(odd["weights"], even["weights"])
        less = stage(model + "151552", "--on", "4xh100-sxm", "--tp", "4", "--stack", "megatron")
        self.assertEqual(odd["weights"] - less["weights"], 2 * 2 * (152064 - 151552) * 1024 / 4)

    def test_heads_that_tp_does_not_divide(self):
        text = refusal("gpt:layers=12,hidden=1600,heads=25,vocab=50257", "--on", "8xa100-80", "--tp", "2")
        self.assertIn("25 query heads; one of 1, 5, 25", text)

    def test_no_layer_is_dropped(self):
        # 80 layers do not make 16 x 2 equal chunks: refused, never 64 layers
        text = refusal(SMALL.replace("layers=8", "layers=80"), "--on", "32xh100-sxm", "--pp", "16", "--vpp", "2",
                       "--stack", "megatron")
        self.assertIn("do not divide the 80 layers", text)
        # 30 layers on 4 stages are 32 slots with embedding and loss: all 30 are there
        stages = memory(SMALL.replace("layers=8", "layers=30"), "--on", "4xh100-sxm", "--pp", "4", "--stack",
                        "megatron")["stages"]
        self.assertEqual([s["layers"] for s in stages], [7, 8, 8, 7])

    def test_uneven_stages_are_counted_one_by_one(self):
        stages = memory(SMALL, "--on", "4xh100-sxm", "--pp", "4", "--layers-per-stage", "1,2,2,3", "--stack",
                        "megatron")["stages"]
        layer = 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024)
        table = 2 * 32000 * 1024
        self.assertEqual([s["weights"] for s in stages],
                         [table + layer, 2 * layer, 2 * layer, table + 3 * layer + 2 * 1024])

    def test_tied_embeddings_stand_on_both_ends(self):
        model = SMALL + ",tied=true"
        ends = memory(model, "--on", "4xh100-sxm", "--pp", "4", "--stack", "megatron")["stages"]
        self.assertGreaterEqual(ends[0]["weights"] - ends[1]["weights"], 2 * 32000 * 1024)
        self.assertGreaterEqual(ends[3]["weights"] - ends[1]["weights"], 2 * 32000 * 1024)
        whole = stage(model, "--on", "1xh100-sxm", "--stack", "megatron", "--tp", "1")
        self.assertEqual(sum(s["weights"] for s in ends) - whole["weights"], 2 * 32000 * 1024)  # one copy more

    def test_sizes_that_need_more_gpus(self):
        self.assertIn("16 GPUs", refusal("llama3-70b", "--on", "8xa100-80", "--tp", "8", "--pp", "2"))

    def test_a_batch_that_the_ranks_do_not_divide(self):
        text = refusal("llama3-8b", "--on", "384xa100-80", "--global-batch", "1024", "--tp", "1", "--micro-batch", "1")
        self.assertIn("a multiple of 384", text)


class Timeline(unittest.TestCase):
    ARGS = ["llama3-8b", "--on", "8xh100-sxm", "--stack", "megatron", "--pp", "4", "--global-batch", "64"]

    def test_its_fullest_points_are_the_stages_peaks(self):
        stages = memory(*self.ARGS)["stages"]
        out = subprocess.run([PREFLOP, "estimate", *self.ARGS, "--timeline"], capture_output=True, text=True, check=True)
        rows = list(csv.DictReader(io.StringIO(out.stdout)))
        terms = ["weights", "gradients", "optimizer", "activations", "logits", "buffers", "transients"]
        for s in stages:
            own = [r for r in rows if int(r["stage"]) == s["stage"]]
            self.assertEqual(max(float(r["allocated"]) for r in own), s["allocated"])
            self.assertEqual([own[0]["event"], own[-1]["event"]], ["init", "optimizer_step"])
            for r in own:
                self.assertEqual(sum(float(r[t]) for t in terms), float(r["allocated"]))
        as_json = json.loads(run(*self.ARGS, "--timeline").stdout)
        self.assertEqual(as_json["schema"], "preflop.timeline/1")
        self.assertEqual(sum(len(s["points"]) for s in as_json["stages"]), len(rows))

    def test_the_file_says_the_format(self):
        out = subprocess.run([PREFLOP, "estimate", *self.ARGS, "--timeline", "-o", "x.svg"], capture_output=True, text=True)
        self.assertEqual(out.returncode, 2)
        self.assertIn(".csv or .json", out.stderr)


class States(unittest.TestCase):
    def test_bytes_per_parameter_are_the_recipes(self):
        # 7,241,732,096 parameters, one GPU, nothing sharded: the sum is what the recipe says, never a constant
        params = 7241732096
        for stack, flags, each in [("textbook", [], 16), ("megatron", [], 18),
                                   ("megatron", ["--grad-dtype", "bf16"], 16)]:
            s = stage("mistral-7b", "--on", "1xh100-sxm", "--stack", stack, "--tp", "1", *flags)
            states = s["weights"] + s["gradients"] + s["optimizer"]
            self.assertAlmostEqual(states / params, each, delta=0.01, msg=f"{stack} {flags}")

    def test_the_distributed_optimizer_shards_twelve_bytes_of_eighteen(self):
        params = 8030261248
        for dp in (1, 2, 8):
            s = stage("llama3-8b", "--on", f"{dp}xh100-sxm", "--stack", "megatron", "--tp", "1", "--zero", "1")
            states = s["weights"] + s["gradients"] + s["optimizer"]
            self.assertAlmostEqual(states / params, 6 + 12 / dp, delta=0.02)

    def test_zero_over_one_rank_shards_nothing(self):
        args = ["llama3-8b", "--on", "8xh100-sxm", "--tp", "8", "--stack", "megatron"]
        self.assertEqual(stage(*args, "--zero", "1"), stage(*args, "--zero", "0"))

    def test_fsdp_gathers_what_it_sharded(self):
        # the states fall with the ranks; what is gathered for a layer at work does not
        two, eight = (stage("llama3-8b", "--on", f"{n}xh100-sxm", "--stack", "torchtitan", "--tp", "1") for n in (2, 8))
        self.assertAlmostEqual(two["optimizer"] / eight["optimizer"], 4, delta=0.01)
        self.assertGreaterEqual(eight["transients"], two["transients"] * 0.9)


class Activations(unittest.TestCase):
    def at(self, *args):
        return stage("llama3-8b", "--on", "8xh100-sxm", "--stack", "megatron", "--tp", "8", *args)

    def test_logits_grow_with_the_vocabulary(self):
        small, large = (stage(f"llama:layers=2,hidden=1024,heads=16,kv_heads=16,ffn=4096,vocab={v}", "--on",
                              "1xh100-sxm", "--stack", "torchtitan", "--tp", "1")["logits"] for v in (32768, 262144))
        self.assertAlmostEqual(large / small, 8, delta=0.01)

    def test_flash_attention_left_little_for_selective_recompute(self):
        none, selective = self.at("--recompute", "none"), self.at("--recompute", "selective")
        self.assertLess(none["activations"] - selective["activations"], 0.15 * none["activations"])
        dense = [self.at("--recompute", r, "--attention", "unfused") for r in ("none", "selective")]
        self.assertGreater(dense[0]["activations"] - dense[1]["activations"], 0.5 * dense[0]["activations"])

    def test_flash_attention_is_linear_in_the_sequence(self):
        # twice the sequence is twice the activations; with the scores stored, nearly four times
        for attention, low, high in [("fa2", 1.99, 2.01), ("unfused", 3, 4)]:
            short, long = (self.at("--attention", attention, "--recompute", "none", "--seq", str(s))["activations"]
                           for s in (8192, 16384))
            self.assertGreater(long / short, low)
            self.assertLess(long / short, high)

    def test_recomputation_that_frees_nothing_says_so(self):
        # with flash attention, the checkpoint around the core holds q, k and the merged product that v is a view of
        args = ["llama3-8b", "--on", "8xh100-sxm", "--stack", "megatron", "--tp", "8", "--recompute"]
        said = {}
        for choice, attention in [("selective", "cudnn"), ("selective", "unfused"), ("full", "cudnn"), ("none", "cudnn")]:
            out = json.loads(run(*args, choice, "--attention", attention).stdout)
            said[choice, attention] = [w for w in out["warnings"] if "recomputation frees nothing" in w]
        self.assertEqual([len(w) for w in said.values()], [1, 0, 0, 0])
        # 2 T (H + K) d / t - 4 T H / t a layer, T = 8192, H = 32, K = 8, d = 128, t = 8, 32 layers
        more = 32 * (2 * 8192 * 40 * 128 - 4 * 8192 * 32) / 8
        self.assertIn(f"{more / 2**20:.0f} MiB more", said["selective", "cudnn"][0])

    def test_full_recomputation_keeps_least(self):
        for attention in ("cudnn", "unfused"):
            kept = [self.at("--attention", attention, "--recompute", r)["activations"]
                    for r in ("none", "selective", "full")]
            self.assertLess(kept[2], 0.1 * min(kept[:2]))

    def test_terms_sum_to_what_is_allocated(self):
        for s in memory("llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "4")["stages"]:
            self.assertEqual(sum(s[t] for t in TERMS), s["allocated"])


class Verdicts(unittest.TestCase):
    def test_choices_that_change_the_verdict_do(self):
        words = {"fits": "fits", "tight": "tight", "does not fit": "no"}
        seen = set()
        for args in (["llama3-8b", "--on", "8xh100-sxm", "--tp", "1", "--dp", "8", "--stack", "torchtitan"],
                     ["llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "2", "--global-batch", "512"],
                     ["llama3-70b", "--on", "16xh100-sxm", "--tp", "8", "--pp", "2", "--global-batch", "512"],
                     ["gpt3-175b", "--on", "256xa100-80", "--tp", "8", "--pp", "8", "--global-batch", "512"]):
            text = subprocess.run([PREFLOP, "estimate", *args], capture_output=True, text=True).stdout
            whole = json.loads(run(*args).stdout)
            now = whole["memory"]["verdict"]
            for choice, says in re.findall(r"^  (\w+=\w+): (fits|tight|does not fit), ", text, re.M):
                key, value = choice.split("=")
                with self.subTest(args=args, choice=choice):
                    same = [] if key == "recompute" else ["--recompute", whole["recipe"]["recompute"]]
                    verdict = memory(*args, *same, "--" + key.replace("_", "-"), value)["verdict"]
                    self.assertEqual(verdict, words[says])
                    self.assertNotEqual(verdict, now)
                seen.add(key)
        self.assertLessEqual({"recompute", "micro_batch", "seq"}, seen)


class Copies(unittest.TestCase):
    SEVENTY = ["llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "2", "--recompute", "full"]

    def test_fp8_keeps_bf16_weights_and_copies_of_them(self):
        # a cast copy and its transpose, a byte each, beside two bytes: about twice the weights of bf16
        plain, eight = (stage(*self.SEVENTY, *more) for more in ([], ["--precision", "fp8-delayed"]))
        self.assertGreater(eight["weights"], 1.8 * plain["weights"])
        self.assertLess(eight["weights"], 2.01 * plain["weights"])
        self.assertGreater(eight["allocated"], plain["allocated"])

    def test_states_on_the_host_are_bytes_of_the_host(self):
        here, there = memory(*self.SEVENTY), memory(*self.SEVENTY, "--offload", "optimizer")
        self.assertIsNone(here["host_bytes_per_node"])
        gpus = [s["optimizer"] for s in here["stages"]]
        # the 64 GPUs stand in 8 nodes; what left the GPUs is on their hosts, and at most buffers beside it
        left = sum(gpus) / len(gpus) * 8
        self.assertGreaterEqual(there["host_bytes_per_node"], 0.99 * left)
        self.assertLess(there["host_bytes_per_node"], 1.6 * left)
        self.assertEqual([s["optimizer"] for s in there["stages"]], [0] * len(gpus))

    def test_a_plain_loss_takes_more_than_a_chunked_one(self):
        sizes = {loss: stage("llama3-8b", "--on", "8xh100-sxm", "--stack", "torchtitan", "--tp", "1", "--loss", loss,
                             "--recompute", "full")["allocated"] for loss in ("plain", "chunked")}
        self.assertGreater(sizes["plain"], sizes["chunked"])

    def test_every_kind_of_memory_has_its_name(self):
        for s in memory(*self.SEVENTY)["stages"]:
            self.assertLess(s["allocated"], s["reserved"])
            self.assertLess(s["reserved"], s["device"])


class Machines(unittest.TestCase):
    def test_capacity_is_what_the_driver_reports(self):
        for gpu, mib in [("h100-sxm", 81559), ("l40s", 46068), ("l4", 23034), ("t4", 15360)]:
            capacity = memory("gpt2", "--on", f"1x{gpu}", "--stack", "textbook", "--precision", "fp16")["capacity_bytes"]
            self.assertLessEqual(capacity, mib * 2**20, gpu)
            self.assertGreater(capacity, 0.97 * mib * 2**20, gpu)

    def test_what_torch_does_not_count_is_counted(self):
        s = stage("llama3-8b", "--on", "8xh100-sxm")
        self.assertGreater(s["context"], 0.3 * 2**30)
        self.assertAlmostEqual(s["device"], s["reserved"] + s["context"], delta=1)


if __name__ == "__main__":
    unittest.main()
