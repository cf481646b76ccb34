"""Components of memory that users and estimators forget, and which test holds each.

COVERS is the list: a behaviour, as public issues report it, and the tests that fail when it is lost; NOT_BUILT names
those of stacks that do not exist yet. The first test holds the list against the files.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
EIGHT = ["llama3-8b", "--on", "8xh100-sxm"]
PARAMS = 8030261248

COVERS = {
    "a pipeline's parameters are not its mean": ["test_uneven_stages_are_counted_one_by_one"],
    "sharding over one rank saves nothing, and says so": ["test_zero_over_one_rank_shards_nothing",
                                                          "test_sharding_over_one_rank_says_so"],
    "FSDP gathers what it sharded": ["test_fsdp_gathers_what_it_sharded"],
    "numbers are of one GPU": ["test_numbers_are_of_one_gpu"],
    "tied embeddings stand on both ends; a large table weighs as much as layers": [
        "test_tied_embeddings_stand_on_both_ends", "test_a_large_table_weighs_as_much_as_layers"],
    "a key-value cache left on in the config is not of training": ["test_use_cache_changes_nothing"],
    "fp8 keeps 16-bit weights and copies": ["test_fp8_keeps_bf16_weights_and_copies_of_them"],
    "16, 18, 20 bytes a parameter": ["test_bytes_per_parameter_are_the_recipes", "OfEveryStackAndItsZeroStages",
                                     "test_gradients_kept_twice_are_twenty_bytes"],
    "the distributed optimizer: 6 + 12 / dp": ["test_the_distributed_optimizer_shards_twelve_bytes_of_eighteen"],
    "bytes stand beside their types": ["test_bytes_stand_beside_their_types"],
    "temporaries of the optimizer's step": ["test_an_unfused_optimizer_step_holds_a_tensor_more"],
    "states that appear with the first step": ["test_states_of_the_first_step_are_there_from_the_start"],
    "logits, by vocabulary and loss": ["test_logits_grow_with_the_vocabulary", "test_a_loss_is_a_choice",
                                       "test_a_plain_loss_takes_more_than_a_chunked_one"],
    "selective recomputation beside flash attention": ["test_flash_attention_left_little_for_selective_recompute"],
    "recomputation that frees nothing or costs memory": ["test_recomputation_that_frees_nothing_says_so",
                                                         "SayWhenTheyCostMemory"],
    "flash attention is linear": ["test_flash_attention_is_linear_in_the_sequence"],
    "ZeRO 2 and 3 need buckets and gathered layers": ["test_sharded_states_bring_buffers"],
    "gradients wait unsharded while they accumulate": ["test_accumulated_gradients_are_not_sharded_in_a_pipeline"],
    "a reducer's second copy of gradients": ["test_gradients_kept_twice_are_twenty_bytes"],
    "what torch does not count": ["test_what_torch_does_not_count_is_counted",
                                  "test_every_further_communicator_is_counted"],
    "allocated, reserved, device": ["test_every_kind_of_memory_has_its_name",
                                    "test_what_torch_does_not_count_is_counted"],
    "GB and GiB; what the driver reports": ["test_capacity_is_what_the_driver_reports"],
    "usable is less than nominal": ["test_capacity_is_what_the_driver_reports"],
    "host memory is a resource": ["test_states_on_the_host_are_bytes_of_the_host", "HostMemoryIsANodesAndCounts",
                                  "OfAPartTheHostNeedsThePart"],
    "unpadded batches follow the longest sample, packed rows are full": ["test_memory_follows_the_longest_sample"],
    "memory falls with the tokens, so short data says nothing of long": ["test_memory_follows_the_longest_sample"],
    "releases differ: a band, and generations": ["test_predictions_have_a_band", "GenerationsHaveWhatTheirReleaseHad"],
}
# Of stacks that are not built: DeepSpeed's own buckets (auto sizes, leaf modules, contiguous gradients), adapters (base
# in fp32, inputs of every adapted layer, adapters on the head), full copies at load, 4-D masks of packed SDPA,
# reinforcement learning (rollout beside training).
NOT_BUILT = {"deepspeed": "deepspeed", "transformers": "transformers", "--lora": "--lora", "--quantize": "--quantize"}


def run(*args):
    return subprocess.run([PREFLOP, "estimate", *args, "--json"], capture_output=True, text=True)


def whole(*args):
    out = run(*args)
    if out.returncode != 0:
        raise AssertionError(f"{args}: {out.stderr}")
    return json.loads(out.stdout)


def stage(*args, at=0):
    return whole(*args)["memory"]["stages"][at]


class List(unittest.TestCase):
    def test_every_test_of_the_list_is_there(self):
        text = "".join(p.read_text() for p in [*ROOT.glob("tests/cli/test_memory_*.py"), *ROOT.glob("tests/law/*.cpp")])
        there = set(re.findall(r"def (test_\w+)|(?:TEST|RC_GTEST_PROP)\(\w+, (\w+)", text))
        names = {a or b for a, b in there}
        for behaviour, tests in COVERS.items():
            self.assertTrue(tests, behaviour)
            self.assertLessEqual(set(tests), names, behaviour)

    def test_what_is_not_built_is_refused_by_name(self):
        # When one of them is, its behaviours belong into the list above.
        for what, name in NOT_BUILT.items():
            args = [what, "r=16"] if what == "--lora" else [what, "nf4"] if what == "--quantize" else ["--stack", what]
            out = run(*EIGHT, *args)
            self.assertEqual(out.returncode, 2, what)
            self.assertIn(name, out.stderr)
            self.assertRegex(out.stderr, "not built|unknown stack")


class States(unittest.TestCase):
    def test_sharding_over_one_rank_says_so(self):
        def said(*args):
            return [w for w in whole(*EIGHT, "--stack", "megatron", *args)["warnings"] if "shards nothing" in w]
        self.assertEqual(len(said("--tp", "8", "--zero", "1")), 1)
        self.assertEqual(said("--tp", "4", "--zero", "1"), [])
        self.assertEqual(said("--tp", "8", "--zero", "0"), [])
        self.assertEqual(said("--tp", "8"), [])  # the stack's default, not a wish

    def test_numbers_are_of_one_gpu(self):
        # what one GPU holds, times the GPUs, is more than the model's states: never a total that looks like a card's
        args = ["llama3-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "2"]
        stages = whole(*args)["memory"]["stages"]
        self.assertAlmostEqual(sum(s["weights"] * 8 for s in stages) / (2 * 70553706496), 1, delta=0.01)
        text = subprocess.run([PREFLOP, "estimate", *args], capture_output=True, text=True, check=True).stdout
        self.assertIn("Memory per GPU, GiB", text)

    def test_gradients_kept_twice_are_twenty_bytes(self):
        # 16-bit gradients that the reducer holds and fp32 ones that accumulate: 2 + (2 + 4) + 12
        for stack in ("nanotron", "megatron-deepspeed"):
            s = stage(*EIGHT, "--stack", stack, "--tp", "1", "--zero", "0")
            self.assertAlmostEqual(s["gradients"] / PARAMS, 6, delta=0.01)
            self.assertAlmostEqual((s["weights"] + s["gradients"] + s["optimizer"]) / PARAMS, 20, delta=0.02)
        fused = stage(*EIGHT, "--stack", "megatron", "--tp", "1", "--zero", "0")
        self.assertAlmostEqual(fused["gradients"] / PARAMS, 4, delta=0.01)

    def test_bytes_stand_beside_their_types(self):
        for dtype, width in [("bf16", 2), ("fp32", 4)]:
            text = subprocess.run([PREFLOP, "explain", "memory.weights", *EIGHT, "--stack", "megatron", "--tp", "1",
                                   "--weight-dtype", dtype], capture_output=True, text=True, check=True).stdout
            self.assertIn(f"{width} B x ", text)
        text = subprocess.run([PREFLOP, "estimate", *EIGHT, "--weight-dtype", "bf16"], capture_output=True, text=True,
                              check=True).stdout
        self.assertIn("bf16 weights", text)

    def test_an_unfused_optimizer_step_holds_a_tensor_more(self):
        # foreach: one fp32 tensor of all that a rank updates; fused: none
        for stack, more in [("fsdp1", 4), ("torchtitan", 0), ("megatron", 0)]:
            moments = stage(*EIGHT, "--stack", stack, "--tp", "1")["moments"]
            self.assertAlmostEqual((moments["optimizer_step"] - moments["end_of_backward"]) / (PARAMS / 8), more,
                                   delta=0.02, msg=stack)
        # and it is a choice: for-loop holds two of its largest tensor, a table of 128,256 x 4,096
        for way, more in [("fused", 0), ("foreach", 4 * PARAMS / 8), ("for-loop", 2 * 4 * 128256 * 4096 / 8)]:
            moments = stage(*EIGHT, "--stack", "torchtitan", "--tp", "1", "--optimizer-implementation",
                            way)["moments"]
            self.assertAlmostEqual(moments["optimizer_step"] - moments["end_of_backward"], more, delta=0.01 * more)

    def test_states_of_the_first_step_are_there_from_the_start(self):
        # they are made in the first optimizer step: a run that fits before it must fit with them
        s = stage(*EIGHT, "--stack", "megatron", "--tp", "1")
        self.assertGreater(s["optimizer"], 0)
        self.assertGreaterEqual(s["moments"]["init"], s["weights"] + s["gradients"] + s["optimizer"])
        self.assertGreaterEqual(s["moments"]["last_layer_backward"], s["moments"]["init"])

    def test_sharded_states_bring_buffers(self):
        # stage 3 shards the weights too, and holds what it gathered of layers beside its share of them
        two, three = (stage(*EIGHT, "--stack", "fsdp1", "--tp", "1", "--zero", z) for z in ("2", "3"))
        self.assertLess(three["weights"], two["weights"])
        layer = 218112000  # parameters of a layer, gathered in 16 bits for compute
        self.assertGreater(three["weights"] - 4 * PARAMS / 8, 2 * layer)

    def test_accumulated_gradients_are_not_sharded_in_a_pipeline(self):
        # torchtitan reduces gradients of a pipeline's stages once, after the last micro-batch
        flat = stage(*EIGHT, "--stack", "torchtitan", "--tp", "1", "--global-batch", "64")
        piped = stage(*EIGHT, "--stack", "torchtitan", "--tp", "1", "--pp", "2", "--global-batch", "64")
        self.assertAlmostEqual(flat["gradients"] / (4 * PARAMS / 8), 1, delta=0.02)
        self.assertGreater(piped["gradients"] / (4 * PARAMS / 8), 4)


class Tables(unittest.TestCase):
    def test_a_large_table_weighs_as_much_as_layers(self):
        # 250,880 words of 14,336: 1.46 layers of BLOOM
        stages = whole("bloom-176b", "--on", "384xa100-80", "--tp", "4", "--pp", "12", "--stack",
                       "megatron-deepspeed")["memory"]["stages"]
        layers = stages[1]["weights"] / stages[1]["layers"]
        self.assertAlmostEqual((stages[0]["weights"] - stages[0]["layers"] * layers) / layers, 1.46, delta=0.02)

    def test_use_cache_changes_nothing(self):
        config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024,
                  "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 16,
                  "vocab_size": 32000, "rms_norm_eps": 1e-5, "hidden_act": "silu", "max_position_embeddings": 4096}
        seen = []
        for cache in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "config.json"
                path.write_text(json.dumps({**config, "use_cache": cache}))
                seen.append(whole(str(path), "--on", "8xh100-sxm", "--stack", "torchtitan")["memory"])
        self.assertEqual(seen[0], seen[1])


class Activations(unittest.TestCase):
    def test_a_loss_is_a_choice(self):
        # each keeps less of the logits than the one before
        sizes = {loss: stage(*EIGHT, "--stack", "torchtitan", "--tp", "1", "--loss", loss)["logits"]
                 for loss in ("plain", "chunked")}
        self.assertGreater(sizes["plain"], 4 * sizes["chunked"])
        fused, plain = (stage(*EIGHT, "--stack", "megatron", "--tp", "1", "--recompute", "none",
                              "--loss", loss)["moments"]["loss"]
                        for loss in ("fused", "plain"))
        self.assertLess(fused, plain)

    def test_memory_follows_the_longest_sample(self):
        args = [*EIGHT, "--stack", "torchtitan", "--tp", "1", "--samples", "10000", "--mean-length", "300"]

        def peak(packing, longest):
            return whole(*args, "--packing", packing, "--max-length", longest)["memory"]["peak_allocated_bytes"]
        self.assertEqual(peak("off", "2048"), peak("on", "2048"))  # every row is full, or the longest may be
        self.assertGreater(peak("off", "4096"), 1.2 * peak("off", "2048"))


class Machines(unittest.TestCase):
    def test_every_further_communicator_is_counted(self):
        sizes = [stage(*EIGHT, "--stack", "megatron", *layout)["context"]
                 for layout in (["--tp", "1"], ["--tp", "2"], ["--tp", "2", "--pp", "2"],
                                ["--tp", "2", "--pp", "2", "--cp", "2"])]
        steps = [b - a for a, b in zip(sizes, sizes[1:])]
        self.assertGreater(steps[0], 0.4 * 2**30)
        for step in steps[1:]:
            self.assertAlmostEqual(step, steps[0], delta=1)

    def test_predictions_have_a_band(self):
        m = whole(*EIGHT, "--stack", "torchtitan", "--tp", "1")["memory"]
        self.assertLess(m["low_device_bytes"], m["peak_device_bytes"])
        self.assertGreater(m["high_device_bytes"], m["peak_device_bytes"])


if __name__ == "__main__":
    unittest.main()
