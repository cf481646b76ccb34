"""export and --from: files that other programs accept, and that say again what they were made of."""

import ast
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PREFLOP = os.environ["PREFLOP"]


def run(*args, check=None):
    done = subprocess.run([PREFLOP, *args], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


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

    def batch_job(self, torchrun, with_run=True):
        """job.sbatch in a cluster of stand-ins: srun starts its command once a node, torchrun says what it was told."""
        folder = tempfile.mkdtemp(dir=self.folder)
        for form, name in (("slurm", "job.sbatch"), ("megatron", "run.sh")):
            if name == "job.sbatch" or with_run:
                self.assertEqual(run("export", self.plan, "--to", form, "-o", os.path.join(folder, name))[0], 0)
        with open(os.path.join(folder, "job.sbatch"), encoding="utf-8") as file:
            asked = dict(re.findall(r"^#SBATCH (--[a-z-]+)(?:=(.*))?$", file.read(), re.M))
        nodes = [f"node{i:03}" for i in range(int(asked["--nodes"]))]
        stands = {"scontrol": "printf '%s\\n' " + " ".join(nodes) + "\n",
                  "srun": 'echo "srun $*" >> log\nwhile [[ $1 == --* ]]; do shift; done\nworst=0\n'
                          'for SLURM_NODEID in ' + " ".join(map(str, range(len(nodes)))) + '; do\n'
                          '  export SLURM_NODEID\n  "$@" || worst=1\ndone\nexit $worst\n',
                  "torchrun": 'echo "torchrun $* master=${MASTER_ADDR:-none}:${MASTER_PORT:-none}" >> log\n' + torchrun + "\n"}
        for name, body in stands.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/bash\n" + body)
            os.chmod(path, 0o755)
        env = {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "SLURM_JOB_NODELIST": "node[000-999]", "SLURM_JOB_ID": "77"}
        env.pop("MASTER_ADDR", None)
        done = subprocess.run(["bash", "job.sbatch"], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
        log = pathlib.Path(folder, "log")
        return done, asked, nodes, log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def test_a_batch_job_starts_one_launcher_a_node(self):
        done, asked, nodes, log = self.batch_job("exit 0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((asked["--ntasks-per-node"], asked["--gpus-per-node"], len(nodes)), ("1", "8", 8))
        steps = [line for line in log if line.startswith("srun ")]
        self.assertEqual(len(steps), 1)
        # The first task that fails ends the others, and the launcher's processes have all cores of the node.
        self.assertIn("--kill-on-bad-exit=1", steps[0])
        self.assertIn("--cpu-bind=none", steps[0])
        launched = [line for line in log if line.startswith("torchrun ")]
        self.assertEqual(len(launched), len(nodes))
        for line in launched:
            self.assertIn(f"--nnodes {len(nodes)} --nproc_per_node {asked['--gpus-per-node']} ", line)
            self.assertIn(f"--rdzv_endpoint {nodes[0]}:29500 ", line)
            self.assertIn("--rdzv_id 77 ", line)
            self.assertTrue(line.endswith(f"master={nodes[0]}:29500"), line)

    def test_a_batch_job_fails_with_its_first_error(self):
        self.assertNotEqual(self.batch_job('[[ $SLURM_NODEID != 3 ]]')[0].returncode, 0)
        done, _, _, log = self.batch_job("exit 0", with_run=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("run.sh", done.stderr)
        self.assertEqual(log, [])  # before any node is started

    def exported(self, form, *words):
        """What `export` prints and says of an estimate."""
        path = os.path.join(self.folder, "one.json")
        code, _, err = run("estimate", *words, "-o", path)
        self.assertIn(code, (0, 3), err)
        code, out, err = run("export", path, "--to", form)
        self.assertEqual(code, 0, err)
        return out, err

    def test_what_a_file_does_not_say_is_named(self):
        own = ("llama3-8b", "--on", "8xh100-sxm", "--stack")
        for form, words, named in (
            ("torchtitan", (*own, "torchtitan", "--optimizer", "sgd"), "torchtitan has no option for optimizer: only the remark"),
            ("megatron", (*own, "megatron", "--attention", "fa3"), "megatron has no option for attention: only the remark"),
            ("deepspeed", (*own, "megatron-deepspeed", "--seq", "4096"), "the training script has to say it"),
            ("torchtitan", (*own, "megatron-fsdp"), "the plan is of stack megatron-fsdp"),
            ("megatron", (*own, "textbook", "--cp", "1"), "the plan is of stack textbook"),
        ):
            self.assertIn(named, self.exported(form, *words)[1])
        for form, words in (("torchtitan", (*own, "torchtitan", "--pp", "1", "--compile", "--loss", "chunked")),
                            ("megatron", (*own, "megatron", "--grad-dtype", "bf16")),
                            ("megatron-bridge", (*own, "megatron", "--grad-dtype", "bf16", "--loss", "plain"))):
            self.assertEqual(self.exported(form, *words)[1], "")

    def test_any_split_into_stages_is_said(self):
        words = ("llama3-70b", "--on", "64xh100-sxm", "--tp", "4", "--pp", "4", "--layers-per-stage", "18,22,21,19")
        for form in ("megatron", "megatron-bridge"):
            out, err = self.exported(form, *words)
            self.assertIn("Et*18|t*22|t*21|t*19L", out)
            self.assertEqual(err, "")

    def test_a_hybrid_starts(self):
        plan = os.path.join(self.folder, "hybrid.json")
        code, _, err = run("plan", "nemotron-h-56b", "--on", "256xh100-sxm", "--stack", "megatron", "--json", "-o", plan)
        self.assertEqual(code, 0, err)
        code, out, err = run("export", plan, "--to", "megatron")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("pretrain_mamba.py \\\n  --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec", out)
        for absent in ("--num-virtual-stages", "--account-for", "-pipeline-num-layers", "--pipeline-model-parallel-layout"):
            self.assertNotIn(absent, out)

    def test_a_job_of_a_model_at_a_path_has_a_name(self):
        folder = os.path.join(self.folder, "my model")
        os.mkdir(folder)
        config = os.path.join(folder, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 4096,
                       "num_attention_heads": 16, "num_hidden_layers": 8, "vocab_size": 32000,
                       "max_position_embeddings": 4096}, file)
        out, _ = self.exported("slurm", config, "--on", "8xh100-sxm")
        self.assertRegex(out, r"(?m)^#SBATCH --job-name=[A-Za-z0-9._-]+$")

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

    def test_older_names_of_a_toml_are_refused_by_name(self):
        base = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n{}\n[parallelism]\n{}\n{}'
        path = os.path.join(self.folder, "train.toml")

        def refusal(training="", parallelism="", more=""):
            with open(path, "w", encoding="utf-8") as file:
                file.write(base.format(training, parallelism, more))
            return run("estimate", "llama3-8b", "--from", path, "--on", "8xh100-sxm")

        for words, named, valid in (
            ({"more": "[experimental]\npipeline_parallel_degree = 2\n"}, "experimental.pipeline_parallel_degree = 2", "parallelism.pipeline_parallel_degree"),
            ({"more": "[experimental]\ncontext_parallel_degree = 4\n"}, "experimental.context_parallel_degree = 4", "parallelism.context_parallel_degree"),
            ({"training": "tensor_parallel_degree = 2"}, "training.tensor_parallel_degree = 2", "parallelism.tensor_parallel_degree"),
            ({"training": "data_parallel_degree = 8"}, "training.data_parallel_degree = 8", "flags"),
            ({"parallelism": "pipeline_parallel_microbatches = 4"}, "parallelism.pipeline_parallel_microbatches = 4", "flags"),
            ({"more": "[float8]\nenable_float8_linear = true\n"}, "float8.enable_float8_linear = true", "flags"),
        ):
            code, _, err = refusal(**words)
            self.assertEqual(code, 2, words)
            self.assertRegex(err, "^preflop: .*train.toml:[0-9]+: " + re.escape(named) + ".* is not read; .*" + re.escape(valid))
            self.assertEqual(err.count("\n"), 1)
        # Of size 1, off, or about something else they say nothing; what is read stays read.
        for words in ({"more": "[experimental]\npipeline_parallel_degree = 1\nenable_async_tensor_parallel = false\n"},
                      {"more": "[validation]\nlocal_batch_size = 8\n[float8]\nenable_fsdp_float8_all_gather = true\nfilter_fqns = ['output']\n"},
                      {"parallelism": 'enable_async_tensor_parallel = true\ncontext_parallel_rotate_method = "allgather"'},
                      {"parallelism": 'tensor_parallel_degree = 2\npipeline_parallel_schedule = "1F1B"'}):
            self.assertIn(refusal(**words)[0], (0, 3), (words, refusal(**words)[2]))
        # A list that names converters changes the numerics.
        with open(path, "w", encoding="utf-8") as file:
            file.write(base.replace('flavor = "8B"', 'flavor = "8B"\nconverters = ["float8"]').format("", "", ""))
        code, _, err = run("estimate", "llama3-8b", "--from", path, "--on", "8xh100-sxm")
        self.assertEqual(code, 2)
        self.assertIn("model.converters = float8", err)

    def test_from_a_script_is_the_same_estimate(self):
        script = os.path.join(self.folder, "run.sh")
        self.assertEqual(run("export", self.plan, "--to", "megatron", "-o", script)[0], 0)
        code, out, err = run("estimate", "--from", script, "--json")
        self.assertEqual((code, err), (0, ""))
        with open(self.plan, encoding="utf-8") as file:
            first = json.load(file)
        self.assertEqual(json.loads(out)["step"]["seconds"], first["step"]["seconds"])

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
