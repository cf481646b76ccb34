"""Every GPU of the catalogue gives an estimate; what is not known exactly is said, and what is unknown says why."""
import json
import math
import os
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args):
    return subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=60)


def read(*args):
    done = run(*args, "--json")
    if done.returncode != 0:
        raise AssertionError(f"{args}: {done.returncode} {done.stderr}")
    return json.loads(done.stdout)


def numbers(value):
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


# What an estimate on several GPUs of one node reads; beyond it, the network.
ALWAYS = ["capacity_bytes"]
WITH_TIME = ["bf16_flops", "matmul_bf16_flops", "memory_bandwidth", "scaleup_bandwidth"]


class EveryGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gpus = sorted(g["id"] for g in read("gpus")["gpus"])
        cls.data = {g: read("gpus", g)["data"] for g in cls.gpus}
        cls.platforms = {p["id"]: read("platforms", p["id"])["data"] for p in read("platforms")["platforms"]}

    def test_there_are_44(self):
        self.assertEqual(len(self.gpus), 44)

    def estimate(self, spec):
        done = run("estimate", "llama3-8b", "--on", spec, "--json")
        self.assertEqual(done.returncode, 0, f"{spec}: {done.stderr}")
        self.assertNotRegex(done.stdout, r"\b(nan|inf)\b")
        out = json.loads(done.stdout)
        for n in numbers(out):
            self.assertTrue(math.isfinite(n), spec)
        return out

    def test_one_and_eight(self):
        for gpu in self.gpus:
            for spec in (f"1x{gpu}", f"8x{gpu}/8"):
                with self.subTest(spec=spec):
                    self.check(gpu, self.estimate(spec))

    def check(self, gpu, out):
        warnings = " ".join(out["warnings"])
        memory = out["memory"]
        if memory["verdict"] is None:
            self.assertIsNone(self.data[gpu]["capacity_bytes"]["value"])
            self.assertIsNone(memory["fits"])
            self.assertIn("no verdict", warnings)
            self.assertIn(self.data[gpu]["capacity_bytes"]["source"], warnings)
        else:
            self.assertIn(memory["verdict"], ("fits", "tight", "no"))
        timed = out["step"].get("seconds") is not None
        if timed:
            self.assertGreater(out["step"]["seconds"], 0)
            # Without a measured matrix rate the bound is the peak itself, and palm counts masked attention too.
            per_gpu = out["step"]["tokens_per_second_per_gpu"] / out["step"]["peak_flops"]
            self.assertLess(out["compute"]["conventions"]["bridge"] * per_gpu, 1)
        else:
            self.assertIn("no step time", warnings)
        assumed = out["cluster"]["assumed"]
        fields = ALWAYS + (WITH_TIME if timed else [])
        if out["cluster"]["gpus"] == 1:
            fields = [f for f in fields if f != "scaleup_bandwidth"]
        platform = self.platforms[out["cluster"]["platform"]]
        for field in fields:
            own = platform.get(field, {"value": None})  # a platform's own value comes first
            rung = (own if own["value"] is not None else self.data[gpu][field])["rung"]
            said = [line for line in assumed if line.startswith(field + "=")]
            if field == "matmul_bf16_flops" and rung == "unknown":
                self.assertEqual(len(said), 1, f"{gpu}: {assumed}")
                self.assertIn("its dense peak", said[0])
            elif rung in ("same_chip", "class_rule"):
                self.assertEqual(len(said), 1, f"{gpu} {field} is {rung}, and not said: {assumed}")
                self.assertIn(rung.replace("_", " "), said[0])
            else:
                self.assertEqual(said, [], f"{gpu} {field} is {rung}")

    def test_some_have_assumed_values(self):
        self.assertIn("capacity_bytes=", " ".join(self.estimate("1xa800")["cluster"]["assumed"]))
        self.assertIn("matmul_bf16_flops=", " ".join(self.estimate("1xh800")["cluster"]["assumed"]))

    def test_text_shows_them(self):
        text = run("estimate", "llama3-8b", "--on", "8xa800", "-v").stdout
        self.assertIn("capacity_bytes=", text)
        self.assertIn("same chip", text)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_unknown_memory_says_why_in_the_text(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            file.write('gpus = 8\ngpus_per_node = 8\n[gpu]\nname = "bare"\nbf16_flops = "1000 TFLOP/s"\n')
            file.flush()
            text = run("estimate", "llama3-8b", "--on", file.name).stdout
        self.assertIn("not known", text)
        self.assertIn("no verdict", text)

    def test_a_sheet_is_a_capacity_where_no_driver_was_read(self):
        for gpu in ("trn1", "trn2", "gaudi2", "gaudi3"):
            self.assertEqual(self.data[gpu]["capacity_bytes"]["value"], self.data[gpu]["nominal_bytes"]["value"])
            self.assertIn("capacity_bytes=", run("estimate", "llama3-8b", "--on", f"8x{gpu}", "-v").stdout)

    def test_the_catalogue_checks_itself(self):
        done = run("gpus", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("44 GPUs and 72 platforms: every value has its source", done.stdout)
        self.assertEqual(read("gpus", "--check")["faults"], [])
        self.assertEqual(run("gpus", "h100-sxm", "--check").returncode, 2)

    def test_a_faulty_overlay_is_found(self):
        import pathlib
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "gpus.csv"
            path.write_text("id,field,value,unit,rung,source\n"
                            "mine,name,Mine,text,,\nmine,vendor,NVIDIA,text,,\nmine,arch,sm90,text,,\n"
                            "mine,default_platform,dgx-h100,text,,\n"
                            "mine,bf16_flops,500,TFLOP/s,exact,a test\n"
                            "mine,bf16_sparse_headline,600,TFLOP/s,exact,a test\n")
            done = run("gpus", "--check", "--data-dir", folder)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            self.assertIn("bf16_flops is above bf16_sparse_headline", done.stdout)


if __name__ == "__main__":
    unittest.main()
