"""What a layer keeps for its backward pass: preflop against autograd itself.

tests/autograd/saved.csv holds the bytes that PyTorch kept of small layers (tests/autograd/layers.py); preflop must
say the same of each. Where torch can be imported (Debian: python3-torch) they are measured again.
`test_autograd.py --write` measures and writes the file.
"""
import csv
import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "autograd" / "saved.csv"
SHAPE = ["gated", "hidden", "heads", "kv_heads", "head_dim", "ffn", "dropout", "batch", "seq"]


def cases():
    shapes = [(64, 4, 16, 176, 2, 32), (96, 6, 16, 256, 2, 48), (128, 4, 64, 320, 3, 16)]
    for (hidden, heads, dim, ffn, batch, seq), gated in itertools.product(shapes, (0, 1)):
        for kv in sorted({heads, heads // 2, 1}) if gated else [heads]:
            for p in ([0.0] if gated else [0.0, 0.1]):
                yield dict(zip(SHAPE, (gated, hidden, heads, kv, dim, ffn, p, batch, seq)))


def measured(case):
    sys.path.insert(0, str(ROOT / "autograd"))
    import layers
    import torch
    torch.manual_seed(1)
    layer = layers.Layer(case["hidden"], case["heads"], case["kv_heads"], case["head_dim"], case["ffn"],
                         bool(case["gated"]), case["dropout"])
    return layers.saved_bytes(layer, case["batch"], case["seq"], case["hidden"])


def recorded():
    with open(FILE, newline="") as file:
        for row in csv.DictReader(file):
            yield ({k: float(row[k]) if k == "dropout" else int(row[k]) for k in SHAPE}, int(row["saved_bytes"]))


def predicted(case):
    """The layer's share of the activations that are alive at the peak: two layers more, halved."""
    kept = []
    for layers in (2, 4):
        shape = f"layers={layers},hidden={case['hidden']},heads={case['heads']},head_dim={case['head_dim']}," \
                f"ffn={case['ffn']},vocab=64,seq={case['seq']},"
        shape = "llama:" + shape + f"kv_heads={case['kv_heads']}" if case["gated"] else \
                "gpt:" + shape + f"dropout={case['dropout']}"
        run = subprocess.run(
            [os.environ["PREFLOP"], "estimate", shape, "--on", "1xh100-sxm", "--stack", "torchtitan", "--attention",
             "unfused", "--recompute", "none", "--seq", str(case["seq"]), "--micro-batch", str(case["batch"]),
             "--global-batch", str(case["batch"]), "--tp", "1", "--json"], capture_output=True, text=True)
        if run.returncode != 0:
            raise AssertionError(run.stderr)
        stage = json.loads(run.stdout)["memory"]["stages"][0]
        assert stage["moment"] in ("loss", "last_layer_backward"), stage["moment"]  # all of both layers is alive
        kept.append(stage["activations"])
    return (kept[1] - kept[0]) / 2


class Autograd(unittest.TestCase):
    def test_the_file_holds_every_case(self):
        self.assertEqual([case for case, _ in recorded()], list(cases()))

    def test_preflop_says_what_autograd_kept(self):
        for case, size in recorded():
            with self.subTest(**case):
                self.assertEqual(predicted(case), size)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not here: the recorded bytes stand")
    def test_autograd_keeps_what_the_file_says(self):
        for case, size in recorded():
            with self.subTest(**case):
                self.assertEqual(measured(case), size)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with open(FILE, "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([*SHAPE, "saved_bytes"])
            for each in cases():
                out.writerow([*each.values(), measured(each)])
    else:
        unittest.main()
