"""Every bad input is one clear sentence on stderr and exit 2: flags, recipe files and config.json."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]
ESTIMATE = ["estimate", "llama3-70b", "--on", "64xh100-sxm"]

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1408,
         "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 4, "vocab_size": 32000,
         "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False}


def run(*args, **options):
    return subprocess.run([PREFLOP, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **options)


class Refusals(unittest.TestCase):
    def refused(self, args, *words, **options):
        done = run(*args, **options)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 2, (args, message))
        self.assertEqual(done.stdout, b"", args)
        self.assertTrue(message.startswith("preflop: "), message)
        self.assertEqual(message.count("\n"), 1, message)
        self.assertLess(len(message), 500, message)
        for word in words:
            self.assertIn(word, message, args)


class BadInput(Refusals):
    def test_layouts(self):
        self.refused(["estimate", "llama3-70b", "--on", "56xh100-sxm", "--tp", "7"], "--tp", "64 query heads")
        self.refused(["estimate", "llama3-8b", "--on", "64xh100-sxm", "--tp", "1", "--pp", "64"], "--pp", "32 layers")
        self.refused(ESTIMATE + ["--tp", "8", "--pp", "3"], "--on", "not a multiple")
        self.refused(["estimate", "llama3-70b", "--on", "63xh100-sxm", "--tp", "8"], "--on", "nodes of 8")
        self.refused(ESTIMATE + ["--tp", "8", "--global-batch", "3"], "--global-batch", "multiple of 8")
        self.refused(ESTIMATE + ["--tp", "8", "--global-batch", "500", "--micro-batch", "3"], "--global-batch")
        self.refused(ESTIMATE + ["--tp", "8", "--pp", "2", "--dp", "3"], "--dp")
        self.refused(ESTIMATE + ["--layers-per-stage", "40,41", "--pp", "2"], "--layers-per-stage", "80")
        self.refused(ESTIMATE + ["--vpp", "2", "--tp", "8"], "--vpp")
        self.refused(ESTIMATE + ["--zero", "3", "--tp", "8", "--stack", "megatron"], "--zero", "megatron")
        self.refused(ESTIMATE + ["--tp", "8", "--recompute", "foo"], "--recompute")

    def test_what_no_layout_mends_is_said_by_its_own_flag(self):
        for stack, flag, value in [("torchtitan", "--attention", "fa3"), ("torchtitan", "--loss", "fused"),
                                   ("nanotron", "--offload", "params"), ("megatron-deepspeed", "--precision", "fp8-delayed"),
                                   ("fsdp1", "--attention", "fa3"), ("megatron-deepspeed", "--loss", "fused")]:
            with self.subTest(stack=stack, flag=flag):
                asked = ["llama3-8b", "--on", "8xh100-sxm", "--stack", stack, flag, value]
                self.refused(["estimate", *asked], flag + ": ", stack)
                planned = run("plan", *asked)
                self.assertEqual(planned.returncode, 3)
                self.assertIn("no layout is legal. " + flag + ": ", planned.stdout.decode().replace("\n  ", " "))

    def test_modules_that_the_model_does_not_have(self):
        dense, experts = ["llama3-8b", "--on", "8xh100-sxm"], ["qwen3-30b-a3b", "--on", "32xh200"]
        for command in ("estimate", "plan"):
            for module in ("mla_up_proj", "moe_act", "moe", "shared_experts", "core_attn,moe_act"):
                self.refused([command, *dense, "--stack", "megatron", "--recompute", module], "--recompute",
                             module.split(",")[-1], "core_attn")
            self.refused([command, *experts, "--recompute", "mla_up_proj"], "mla_up_proj", "moe_act")
            self.refused([command, *experts, "--recompute", "shared_experts"], "shared_experts", "moe_act")
            self.refused([command, *dense, "--stack", "megatron-deepspeed", "--recompute", "selective"],
                         "recomputes whole layers only; none or full")
        for model, on, module in (("qwen3-30b-a3b", "32xh200", "moe_act"), ("deepseek-v2-lite", "16xh200", "mla_up_proj"),
                                  ("deepseek-v3", "1024xh200", "shared_experts"), ("llama3-8b", "8xh100-sxm", "mlp")):
            done = run("estimate", model, "--on", on, "--stack", "megatron", "--recompute", module, "-q")
            self.assertEqual(done.stderr, b"", model)

    def test_errors_name_what_is_valid(self):
        self.refused(["estimate", "gpt:layers=2,hidden=64,heads=2,zyx=1", "--on", "1xh100-sxm"], "zyx", "layers")
        self.refused(["validate", "--source", "nope"], "llm-foundry")
        self.refused(["validate", "--explain", "zzzzzz"], "such as")
        self.refused(["estimate", "llama3-8b", "--on", "8xh100-sxm", "--mfu", "40@foo"], "'foo'", "palm")
        self.refused(["gpus", "foo"], "preflop gpus")
        self.refused(["plan", "llama3-8b", "--on", "64xb200,128xh100-sxm"], "more than one cluster", "--on A --on B")
        self.refused(["models", "configs/gpt2.json"], "no name", "preflop estimate")
        self.refused(["estimate", "llama3-8b", "--on", "8xh100-sxm", "-o", "x.pdf"], ".html or .md")
        self.refused(["plan", "llama3-8b", "--on", "8xh100-sxm", "-o", "x.pdf"], "ends in .json or .txt")
        self.refused(["explain", "memory.host_bytes_per_node", "llama3-8b", "--on", "8xh100-sxm"], "--offload")
        shape = "llama:layers=4,hidden=512,heads=8,vocab=32000,ffn=1024,experts=8,top_k=2,expert_ffn=512,"
        for key in ("dense_first=4", "experts_every=5"):
            self.refused(["estimate", shape + key, "--on", "8xh100-sxm"], "no layer with experts", "less than the 4")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.toml")
            for gpu, platform, word in (('matmul_bf16_flops = "90000 TFLOP/s"', "", "matmul_bf16_flops is above bf16_flops"),
                                        ("", '[platform]\nbase = "dgx-h100"\ntorus_axes = 5\n', "torus_axes")):
                with open(path, "w", encoding="utf-8") as out:
                    out.write(f'gpus = 8\n[gpu]\nbase = "h100-sxm"\n{gpu}\n{platform}')
                self.refused(["estimate", "llama3-8b", "--on", path], "c.toml:", word)

    def test_help_lists_the_formats_that_are_written(self):
        for command in ("plan", "why-not", "explain", "mfu"):
            said = run(command, "--help").stdout.decode()
            self.assertNotIn(".svg", said, command)
            self.assertNotIn("--timeline", said, command)
        self.assertIn(".svg", run("estimate", "--help").stdout.decode())

    def test_the_words_that_help_lists_are_those_that_are_taken(self):
        said = run("estimate", "--help").stdout.decode()
        listed = re.findall(r"^  (--[a-z-]+) ([a-z0-9_-]+(?:\|[a-z0-9_-]+)+)(?=\s)", said, re.M)
        self.assertGreater(len(listed), 4)
        for flag, words in listed:
            done = run(*ESTIMATE, "--tokens", "1T", flag, "foo")
            self.assertEqual(done.returncode, 2, flag)
            valid = re.search(r"valid are (.*)|neither (.*?);", done.stderr.decode())
            known = re.split(r", | and | nor ", valid[1] or valid[2])
            self.assertEqual(words.split("|"), known, flag)
            for word in words.split("|"):
                self.assertNotRegex(run(*ESTIMATE, "--tokens", "1T", flag, word).stderr.decode(), "unknown|neither", flag)

    def test_names(self):
        self.refused(["estimate", "lama3-70b", "--on", "64xh100-sxm"], "did you mean llama3-70b")
        self.refused(["estimate", "llama3-70b", "--on", "64xh10-sxm"], "did you mean h100-sxm")
        self.refused(ESTIMATE + ["--stack", "megatro"], "did you mean megatron")
        self.refused(ESTIMATE + ["--stack", "deepspeed"], "deepspeed is not built yet", "megatron-deepspeed")
        self.refused(ESTIMATE + ["--tpp", "8"], "--tpp", "did you mean")
        self.refused(["estimat", "llama3-70b"], "did you mean estimate")
        self.refused(["explain", "memory.activation", "llama3-8b", "--on", "8xh100-sxm"], "did you mean memory.activations")
        self.refused(["models", "lama3-8b"], "did you mean llama3-8b")
        self.refused(["gpus", "h10-sxm"], "did you mean h100-sxm")
        self.refused(["platforms", "dgx-h10"], "did you mean dgx-h100")

    def test_values(self):
        for flag, value in [("--seq", "8GB"), ("--tokens", "1e300"), ("--tokens", "99999999T"), ("--seq", "-5"), ("--seq", "0"),
                            ("--seq", "1.5"), ("--seq", ""), ("--tp", "1e18"), ("--tp", "99999999999999999999"), ("--micro-batch", "nan"),
                            ("--global-batch", "4Mtoks"), ("--mfu", "40"), ("--mfu", "0"), ("--mfu", "150%"), ("--mfu", "40%@pal"),
                            ("--tokens", "100"), ("--precision", "fp9"), ("--loss", "x"), ("--attention", "fa9"), ("--zero", "4"),
                            ("--optimizer", "adamx"), ("--moment-dtype", "fp33"), ("--hsdp", "3")]:
            with self.subTest(flag=flag, value=value):
                self.refused(ESTIMATE + ["--tp", "8", flag, value], flag) if flag != "--tp" else self.refused(ESTIMATE + [flag, value], flag)
        for cluster in ["0xh100-sxm", "64..128xh100-sxm", "1e30xh100-sxm", "-8xh100-sxm", "x", "64x", "8xh100-sxm/0", "1x80"]:
            with self.subTest(cluster=cluster):
                self.refused(["estimate", "llama3-8b", "--on", cluster], "--on")

    def test_what_the_stack_or_the_model_lacks(self):
        dense = ["estimate", "llama3-8b", "--on", "8xh100-sxm", "--tp", "1", "--stack"]
        for stack, flag, value in [("torchtitan", "--cuda-graph", "local"), ("nanotron", "--compile", None), ("fsdp1", "--no-dp-overlap", None),
                                   ("megatron", "--ep-overlap", None), ("megatron", "--dispatcher", "deepep"), ("torchtitan", "--moment-dtype", "fp8"),
                                   ("megatron", "--weight-dtype", "fp4"), ("megatron", "--fp8-attention", None), ("megatron@2021", "--cuda-graph", "local")]:
            with self.subTest(stack=stack, flag=flag):
                self.refused(dense + [stack, flag] + ([value] if value else []), flag)

    def test_contradictions(self):
        self.refused(ESTIMATE + ["--sp", "--no-sp"], "contradicts")
        self.refused(ESTIMATE + ["--tp", "8", "--tp", "4"], "given twice")
        self.refused(ESTIMATE + ["extra"], "extra")
        self.refused(ESTIMATE + ["--tp"], "needs a value", "--tp N")
        self.refused(ESTIMATE + ["--tp", "--pp", "2"], "needs a value")
        self.refused(ESTIMATE + ["--tp="], "empty")
        self.refused(ESTIMATE + ["--json=3"], "takes no value")
        self.refused(ESTIMATE + ["-o", "x.txt", "--json"], "-o")
        self.refused(ESTIMATE + ["-o", "x.foo"], ".json, .txt, .svg")
        self.refused(ESTIMATE + ["--assume", "foo"], "key=value")

    def test_what_is_missing_or_later(self):
        self.refused(["estimate"], "no model")
        self.refused(["estimate", "llama3-70b"], "--on")
        self.refused(["explain"], "--list")
        self.refused(["napkin"], "--params")
        self.refused(["napkin", "--params", "7e9", "--mfu", "40%"], "--on")
        self.refused(["diagnose", "llama3-70b"], "not built yet")
        self.refused(ESTIMATE + ["--csv"], "not built yet")
        self.refused(ESTIMATE + ["--lora", "r=16"], "not built yet")
        self.refused(["estimate", "jamba-v0.1", "--on", "8xh100-sxm"], "not built yet")
        self.refused(["explain", "memory.host_bytes_per_node", "llama3-8b", "--on", "8xh100-sxm"], "not known")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            (at / "huge.json").write_bytes(b" " * ((16 << 20) + 1))
            (at / "binary.json").write_bytes(b"\x7fELF\0\1\2")
            (at / "bad.toml").write_text("tp = \n")
            (at / "unknown.toml").write_text("tpp = 8\n")
            (at / "type.toml").write_text("tp = 1979-05-27\n")
            on = ["--on", "8xh100-sxm"]
            self.refused(["estimate", str(at / "huge.json"), *on], "16 MiB")
            self.refused(["estimate", str(at / "binary.json"), *on], "binary")
            self.refused(["estimate", str(at), *on], "config.json")
            self.refused(["estimate", str(at / "none.json"), *on], "no file")
            self.refused(["estimate", "llama3-8b", *on, "--recipe", str(at / "bad.toml")], "bad.toml:1")
            self.refused(["estimate", "llama3-8b", *on, "--recipe", str(at / "unknown.toml")], "tpp", "did you mean")
            self.refused(["estimate", "llama3-8b", *on, "--recipe", str(at / "type.toml")], "type.toml:1")
            self.refused(["estimate", "llama3-8b", *on, "--recipe", str(at)], "folder")
            self.refused(["estimate", "llama3-8b", *on, "--data-dir", str(at / "none")], "--data-dir")
            self.refused(["estimate", "llama3-8b", "--on", str(at / "none.toml")], "--on")


class BadConfig(Refusals):
    def config(self, text, *words):
        self.refused(["estimate", "-", "--on", "8xh100-sxm"], "stdin" if not words else words[0], *words[1:],
                     input=text if isinstance(text, bytes) else text.encode())

    def changed(self, **values):
        config = dict(LLAMA, **values)
        return json.dumps({key: value for key, value in config.items() if value is not Ellipsis})

    def test_the_config_is_good_as_it_is(self):
        done = run("estimate", "-", "--on", "8xh100-sxm", "--json", input=json.dumps(LLAMA).encode())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_texts(self):
        good = json.dumps(LLAMA)
        self.config(good[:-20])
        self.config("")
        self.config("not json")
        self.config("[1, 2]")
        self.config("3")
        self.config("[" * 100000)
        self.config('{"a":' * 1000 + "1" + "}" * 1000)
        self.config(good[:-1] + ', "hidden_size": 512}', "hidden_size")
        self.config(b"\xff\xfe")
        self.config(b"{\x00}", "binary")
        self.config(good.replace('"llama"', '"ll\\ud800ama"'))

    def test_values(self):
        for key in ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"]:
            for value in [-1, 0, 1.5, 10**18, 1e18, 10**30, None, "many", [1], {}, True]:
                with self.subTest(key=key, value=value):
                    self.config(self.changed(**{key: value}), key)
            with self.subTest(missing=key):
                self.config(self.changed(**{key: ...}), key)
        self.config(self.changed(num_key_value_heads=3), "num_key_value_heads")
        self.config(self.changed(architectures=["T5ForConditionalGeneration"]), "T5")


if __name__ == "__main__":
    unittest.main()
