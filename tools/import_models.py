#!/usr/bin/env python3
"""Writes data/models.csv from two tables of collected facts.

    tools/import_models.py MODELS.csv IDS.csv > data/models.csv

MODELS.csv has one row per published model (shape, counts, sources); IDS.csv has the canonical ids and
their aliases, and further shapes that measured runs use. What the tables do not say in columns of
their own (a family's norms, windows, dropout) is written here, per family, in shape-string keys
(src/adapt/shape_string.hpp). data/models.csv is the file that counts: this script documents where its
rows come from.
"""
import csv
import sys

COLUMNS = ["id", "aliases", "hf_id", "family", "base", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn",
           "vocab", "seq", "tied", "details", "params", "exact", "not_built", "source", "note"]

GEMMA2 = "activation=gelu placement=sandwich window=4096 full_every=2"
GEMMA3 = "activation=gelu placement=sandwich qk_norm=head window={window} full_every=6"
PHI = "placement=shared_pre positions=rope head_bias=true "
NEMOTRON = "bias=false activation=relu2 positions=rope dropout=0"
MPT = "bias=false norm=layer_no_bias dropout=0"
# Class -> (base, details): what makes the family, beyond its sizes.
FAMILIES = {
    "LlamaForCausalLM": ("llama", ""),
    "MistralForCausalLM": ("llama", ""),
    "QWenLMHeadModel": ("llama", "qkv_bias=true"),
    "Qwen2ForCausalLM": ("llama", "qkv_bias=true"),
    "Qwen3ForCausalLM": ("llama", "qk_norm=head"),
    "GemmaForCausalLM": ("llama", "activation=gelu"),
    "Gemma2ForCausalLM": ("llama", GEMMA2),
    "Gemma3ForCausalLM": ("llama", GEMMA3),
    "Gemma3ForConditionalGeneration": ("llama", GEMMA3),
    "PhiForCausalLM": ("gpt", PHI + "dropout=0"),
    "Phi3ForCausalLM": ("llama", ""),
    "GPT2LMHeadModel": ("gpt", ""),
    "GPTBigCodeForCausalLM": ("gpt", ""),
    "GPTJForCausalLM": ("gpt", "bias=false mlp_bias=true head_bias=true placement=shared_pre positions=rope dropout=0"),
    "GPTNeoXForCausalLM": ("gpt", "placement=split_pre positions=rope dropout=0"),
    "OPTForCausalLM": ("gpt", "activation=relu position_rows=2050 dropout=0.1 attention_dropout=0 embedding_dropout=0"),
    "BloomForCausalLM": ("gpt", "positions=alibi embedding_norm=true dropout=0"),
    "FalconForCausalLM": ("gpt", "bias=false placement=split_pre positions=rope dropout=0"),
    "MPTForCausalLM": ("gpt", MPT + " positions=alibi"),
    "Starcoder2ForCausalLM": ("gpt", "positions=rope dropout=0"),
    "OlmoForCausalLM": ("llama", "norm=none"),
    "Olmo2ForCausalLM": ("llama", "placement=post qk_norm=full"),
    "SmolLM3ForCausalLM": ("llama", "nope_every=4"),
    "GraniteForCausalLM": ("llama", ""),
    "CohereForCausalLM": ("llama", "norm=layer_no_bias placement=shared_pre"),
    "NemotronForCausalLM": ("gpt", NEMOTRON),
    "ChatGLMModel": ("llama", "qkv_bias=true"),
    "InternLM2ForCausalLM": ("llama", ""),
    "BaichuanForCausalLM": ("llama", ""),
    "GPT": ("gpt", ""),
    **{name: ("llama", "") for name in ("MixtralForCausalLM", "OlmoeForCausalLM", "Qwen3MoeForCausalLM", "Qwen2MoeForCausalLM",
                                        "DbrxForCausalLM", "Grok1ModelForCausalLM", "GptOssForCausalLM", "MiniMaxM2ForCausalLM",
                                        "Llama4ForConditionalGeneration", "Glm4MoeForCausalLM", "DeepseekV2ForCausalLM",
                                        "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")},
}
CLASS_OF = {"Gemma3": "Gemma3ForCausalLM", "nemotron": "NemotronForCausalLM",
            "FalconForCausalLM (old RWForCausalLM)": "FalconForCausalLM", "JAX": "Grok1ModelForCausalLM",
            "DeepseekV3ForCausalLM (model_type kimi_k2)": "DeepseekV3ForCausalLM"}
# Experts beyond their number, choice and width: what a class adds.
EXPERTS = {
    "OlmoeForCausalLM": "qk_norm=full", "Qwen3MoeForCausalLM": "qk_norm=head", "Qwen2MoeForCausalLM": "qkv_bias=true shared_gate=true",
    "DbrxForCausalLM": "norm=layer_no_bias", "Grok1ModelForCausalLM": "placement=sandwich activation=gelu",
    "GptOssForCausalLM": "qkv_bias=true out_bias=true expert_bias=true router_bias=true sinks=true window=128 full_every=2 activation=quick_gelu",
    "MiniMaxM2ForCausalLM": "qk_norm=full correction_bias=true mtp=3",
    "Llama4ForConditionalGeneration": "window=8192 chunked=true full_every=4 nope_every=4",
    "Glm4MoeForCausalLM": "qkv_bias=true correction_bias=true", "DeepseekV3ForCausalLM": "correction_bias=true",
    "DeepseekV32ForCausalLM": "correction_bias=true", "GlmMoeDsaForCausalLM": "correction_bias=true",
}
# Per model: shared experts' width, layers, what the published total counts.
EXPERTS_OF = {
    "llama4-scout": "shared_ffn=8192", "llama4-maverick": "shared_ffn=8192 experts_every=2", "qwen1.5-moe-a2.7b": "shared_ffn=5632",
    "qwen2-57b-a14b": "shared_ffn=20480", "deepseek-v2-lite": "shared_ffn=2816", "deepseek-v2": "shared_ffn=3072 expert_groups=8 top_groups=3",
    "deepseek-v3": "shared_ffn=2048 mtp=1 expert_groups=8 top_groups=4", "deepseek-r1": "shared_ffn=2048 mtp=1 counted=main+mtp+copies expert_groups=8 top_groups=4",
    "deepseek-v3.2": "shared_ffn=2048 mtp=1 counted=main+mtp+copies expert_groups=8 top_groups=4", "kimi-k2": "shared_ffn=2048",
    "glm4.5": "qk_norm=head shared_ffn=1536 mtp=1 counted=main+mtp+copies", "glm4.5-air": "shared_ffn=1408 mtp=1 counted=main+mtp+copies",
    "glm5": "shared_ffn=2048 mtp=1 counted=main+mtp",
}
INDEXERS = {"deepseek-v3.2": "index_heads=64 index_dim=128 index_top_k=2048", "glm5": "index_heads=32 index_dim=128 index_top_k=2048"}


def expert_details(model, family, facts):
    """Shape-string keys of experts and latent attention."""
    out = [EXPERTS.get(family, ""), f"experts={facts['experts']} top_k={facts['topk']} expert_ffn={facts['moe_ffn']}", EXPERTS_OF.get(model, "")]
    if facts["dense_first_layers"] not in ("", "0"):
        out.append(f"dense_first={facts['dense_first_layers']}")
    latent = dict(part.split("=") for part in facts["mla"].split() if "=" in part and "rank" in part.split("=")[0] or "head_dim=" in part and "index" not in part)
    if latent:
        names = {"q_lora_rank": "q_lora", "kv_lora_rank": "kv_lora", "qk_nope_head_dim": "nope_dim", "qk_rope_head_dim": "rope_dim", "v_head_dim": "value_dim"}
        out += [f"{names[k]}={v}" for k, v in latent.items() if v != "null"]
    return " ".join(w for w in out + [INDEXERS.get(model, "")] if w)
# Rows that differ from their family.
DETAILS = {
    "mistral-7b": "window=4096",
    "gemma3-1b": GEMMA3.format(window=512),
    "phi2": PHI + "dropout=0.1 attention_dropout=0 embedding_dropout=0",
    "phi3-mini": "window=2047",
    "phi4-mini": "window=262144",
    "falcon-7b": "bias=false placement=shared_pre positions=rope dropout=0",
    "falcon-rw-1b": "positions=alibi dropout=0",
    "starcoder2-7b": "positions=rope window=4096 dropout=0.1",
    "baichuan2-13b": "positions=alibi",
    "bloomberggpt-50b": "positions=alibi embedding_norm=true dropout=0",
    "maxtext-22b": "gated=false activation=relu",
    "maxtext-52b": "gated=false activation=relu",
}
NOTES = {
    "llama2-7b": "The published total, 6738417664, counts 32 x 64 stored rotary buffers.",
    "llama2-13b": "The published total, 13015866880, counts 40 x 64 stored rotary buffers.",
    "llama2-70b": "The published total, 68976653312, counts 80 x 64 stored rotary buffers.",
    "qwen3-0.6b": "The published total, 751632384, counts the tied head a second time.",
    "qwen3-1.7b": "The published total, 2031739904, counts the tied head a second time.",
    "pythia-410m": "The published total, 505997504, counts stored causal masks.",
    "falcon-7b": "The published total, 7217189760, counts the tied head a second time.",
    "glm4-9b": "The published total, 9399951392, counts 32 stored rotary values.",
    "gemma3-4b": "The language model alone; 4300079472 with vision tower and projector.",
    "gemma3-12b": "The language model alone; 12187325040 with vision tower and projector.",
    "gemma3-27b": "The language model alone; 27432406640 with vision tower and projector.",
    "mistral-small-24b": "The 3.1 and 3.2 files add a vision tower: 24011361280 in all.",
    "llama4-scout": "The language model alone; 108641793536 with the vision tower and projector (871932416).",
    "llama4-maverick": "The language model alone; 401583781376 with the vision tower and projector (871932416).",
    "deepseek-v3": "The main model; 684489845504 with the MTP layer (11610068224) and copies of embedding and head, and 41540496 FP8 block scales more in the files.",
    "deepseek-r1": "Main model 671026419200, MTP layer 11610068224, copies of embedding and head 1853358080.",
    "deepseek-v3.2": "DeepSeek-R1's count and 62 indexers of 13959424.",
    "kimi-k2": "The published total, 1026408235864, has 3416 values more that no source explains.",
    "grok-1": "Published as 314B; this shape counts 0.5 % more.",
    "gpt-oss-20b": "Active parameters are published without the input embedding (579133440).",
    "gpt-oss-120b": "Active parameters are published without the input embedding (579133440).",
    "glm4.5": "Main model 352797829024, MTP layer 3988069792, copies of embedding and head.",
    "glm4.5-air": "Main model 106852251264, MTP layer 2375059584, copies of embedding and head.",
    "glm5": "Main model 743911218432, MTP layer 9952920576.",
    "minimax-m2.5": "The published total has none of the MTP modules that the config asks for.",
    "opt-125m": "Position table of 2048 + 2 rows.",
    "starcoder2-3b": "Sources disagree whether the head is tied; the class's default, tied, is taken.",
    "starcoder2-15b": "Sources disagree whether the head is tied: untied is 15957889024, tied 15655899136.",
    "mpt-30b": "The shape of llm-foundry's benchmark yaml (56 heads, learned positions); the released mosaicml/mpt-30b differs.",
    "maxtext-52b": "Only a plain MLP and head_dim 256, MaxText's default of that time, give the size in its name.",
    "maxtext-22b": "Only a plain MLP gives the size in its name.",
    "nemotron4-15b": "The vocabulary size is from the paper (arXiv 2402.16819).",
    "nemotron4-340b": "The vocabulary size is that of Nemotron-4 15B.",
}
# Instruct, chat and base editions of the same shape, by the names that people type.
EDITIONS = {
    "llama2-7b": "meta-llama/Llama-2-7b | meta-llama/Llama-2-7b-chat-hf | NousResearch/Llama-2-7b-hf",
    "llama2-13b": "meta-llama/Llama-2-13b | meta-llama/Llama-2-13b-chat-hf",
    "llama2-70b": "meta-llama/Llama-2-70b | meta-llama/Llama-2-70b-chat-hf",
    "llama3-8b": "meta-llama/Meta-Llama-3-8B-Instruct | Meta-Llama-3-8B-Instruct",
    "llama3-70b": "meta-llama/Meta-Llama-3-70B-Instruct | Meta-Llama-3-70B-Instruct",
    "llama3.1-8b": "meta-llama/Llama-3.1-8B-Instruct | Llama-3.1-8B-Instruct | meta-llama/Meta-Llama-3.1-8B-Instruct",
    "llama3.1-70b": "meta-llama/Llama-3.1-70B-Instruct | Llama-3.1-70B-Instruct | meta-llama/Meta-Llama-3.1-70B | meta-llama/Meta-Llama-3.1-70B-Instruct",
    "llama3.1-405b": "meta-llama/Llama-3.1-405B-Instruct | Llama-3.1-405B-Instruct | meta-llama/Meta-Llama-3.1-405B",
    "llama3.2-1b": "meta-llama/Llama-3.2-1B-Instruct | Llama-3.2-1B-Instruct",
    "llama3.2-3b": "meta-llama/Llama-3.2-3B-Instruct | Llama-3.2-3B-Instruct",
    "mistral-7b": "mistralai/Mistral-7B-Instruct-v0.1",
    "mistral-7b-v0.3": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistral-nemo-12b": "mistralai/Mistral-Nemo-Base-2407",
    "qwen2-0.5b": "Qwen/Qwen2-0.5B-Instruct", "qwen2-7b": "Qwen/Qwen2-7B-Instruct", "qwen2-72b": "Qwen/Qwen2-72B-Instruct",
    **{f"qwen2.5-{n.lower()}": f"Qwen/Qwen2.5-{n}-Instruct | Qwen2.5-{n}-Instruct" for n in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B")},
    **{f"qwen3-{n.lower()}": f"Qwen/Qwen3-{n}-Base" for n in ("0.6B", "1.7B", "4B", "8B", "14B")},
    "gemma-2b": "google/gemma-2b-it", "gemma-7b": "google/gemma-7b-it", "gemma2-2b": "google/gemma-2-2b-it",
    "gemma2-9b": "google/gemma-2-9b-it", "gemma2-27b": "google/gemma-2-27b-it", "gemma3-1b": "google/gemma-3-1b-pt",
    "gemma3-4b": "google/gemma-3-4b-pt", "gemma3-12b": "google/gemma-3-12b-pt", "gemma3-27b": "google/gemma-3-27b-pt",
    "phi3-mini": "phi-3-mini-4k", "gpt2": "openai-community/gpt2", "gpt2-medium": "openai-community/gpt2-medium",
    "gpt2-large": "openai-community/gpt2-large", "gpt2-xl": "openai-community/gpt2-xl",
    "smollm2-135m": "HuggingFaceTB/SmolLM-135M | smollm-135m", "smollm2-360m": "HuggingFaceTB/SmolLM-360M | smollm-360m",
}
# Measured shapes: family, further values, source.
GPT_PAPER = ("GPT", {"seq": "2048"}, None)
SHAPES = {
    **{f"mpt-{n}": ("MPTForCausalLM", {"seq": "2048", "tied": "true", "details": MPT + " positions=learned"},
                    "mosaicml/llm-foundry scripts/train/yamls/pretrain") for n in ("125m", "350m", "760m", "1b", "3b", "13b", "30b", "70b")},
    **{f"nanotron-llama-{n}": ("LlamaForCausalLM", {"tied": t},
                               "huggingface/nanotron scripts/scaling_benchmarks.py; tied or not by the size in its name")
       for n, t in (("1.34b", "true"), ("3.57b", "true"), ("8.86b", "false"), ("80b", "false"))},
    **{f"maxtext-{n}": ("LlamaForCausalLM", {"tied": "false", "head_dim": "128"},
                        "AI-Hypercomputer/maxtext src/maxtext/configs/tpu (global_parameter_scale over base.yml: head_dim 128)")
       for n in ("16b", "32b", "64b", "128b", "256b", "512b", "1024b")},
    **{f"maxtext-{n}": ("LlamaForCausalLM", {"tied": "false", "head_dim": "256"}, "AI-Hypercomputer/maxtext src/maxtext/configs/tpu/v4")
       for n in ("22b", "52b")},
    "nemotron3-8b-gpt": ("NemotronForCausalLM", {"tied": "false", "seq": "4096"}, "NVIDIA/NeMo nemo/collections/llm/gpt/model/nemotron.py Nemotron3Config8B"),
    "nemotron3-22b-gpt": ("NemotronForCausalLM", {"tied": "false", "seq": "4096"}, "NVIDIA/NeMo nemo/collections/llm/gpt/model/nemotron.py Nemotron3Config22B"),
    "gpt-104b": ("GPT", {"seq": "2048"}, "bigscience-workshop/bigscience experiments/tr8-104B.md"),
    "gpt-2.6b": ("GPT", {"seq": "2048"}, "shape of measured runs; parameters by the formula of arXiv 2104.04473"),
    "bloomberggpt-50b": ("BloomForCausalLM", {"seq": "2048"}, "arXiv 2303.17564"),
    "gpt3-5b": ("GPT", {"seq": "2048"}, "NVIDIA/NeMo-Framework-Launcher@23.08.03 conf/training/gpt3/5b.yaml"),
    "gpt3-20b": ("GPT", {"seq": "2048"}, "NVIDIA/NeMo-Framework-Launcher@23.08.03 conf/training/gpt3/20b.yaml"),
    "santacoder": ("GPTBigCodeForCausalLM", {"layers": "24", "hidden": "2048", "heads": "16", "kv_heads": "1", "head_dim": "128",
                                             "ffn": "8192", "vocab": "49280", "seq": "2048"}, "mlc-ai/mlc-llm python/mlc_llm/model/model_preset.py (gpt_bigcode)"),
}
DSA4, SSM, VISION = "compressed sparse attention and hyper-connections", "state-space or linear-attention layers", "vision and vision-language models"
NO_SHAPE = "its shape is in none of the sources; pass its config.json"
# Known models of a kind that is not built, beyond those with experts.
NOT_BUILT = {
    "deepseek-v4-flash": [DSA4], "deepseek-v4-pro": [DSA4], "qwen3-next-80b-a3b": [SSM], "granite-4.0-h-small": [SSM],
    "jamba-v0.1": [SSM], "nemotron3-nano-30b-a3b": [SSM], "minimax-text-01": [SSM], "nemotron3-super": [SSM],
    "nemotron3-ultra": [SSM], "nemotron3.5-lightning": [SSM], "qwen3.5-27b": [SSM],
    **{m: [SSM] for m in ("mamba2-130m", "mamba2-370m", "mamba2-780m", "mamba2-1.3b", "mamba2-2.7b", "nemotron-h-8b", "nemotron-h-56b", "nemotron-nano-9b-v2")},
    "llama3.2-90b-vision": [VISION], "llava-13b": [VISION], "roberta-large": ["encoder-only models"], "glm-130b": ["prefix attention"],
}
MEASURED_SOURCES = {"megatron-2020": "NVIDIA/Megatron-LM git 5281919420 images/tables.tex", "zero-bubble-2023": "arXiv 2401.10241 Table 3",
                    "misc-frameworks": "arXiv 2005.14165 Table 2.1", "papers-misc": "arXiv 2204.02311 Table 1"}


def clean_source(text, fallback):
    """References that are public names, as they are; private file numbers become what they are copies of."""
    if not text or text.startswith("("):
        return "shape confirmed by its exact count only"
    if text.startswith("file index"):
        return f"{fallback} config.json, as quoted in public code"
    return text


def unbuilt(row):
    if row["canonical_id"] in NOT_BUILT:
        parts = NOT_BUILT[row["canonical_id"]]
    else:
        return ""
    return "not built yet (" + (" and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]) + ")"


def published_row(out, facts):
    family = CLASS_OF.get(facts["arch"], facts["arch"])
    base, details = FAMILIES[family]
    out.update({k: facts[k] for k in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied")})
    out.update(family=family, base=base, details=DETAILS.get(out["id"], details.format(window=1024)), seq=facts["max_seq"],
               params=facts["computed_params"], source=clean_source(facts["source"], facts["hf_id"]))
    if facts["experts"]:
        out["details"] = expert_details(out["id"], family, facts)
    verified = facts["verified"]
    out["exact"] = "yes" if verified.startswith("yes") else "count" if verified == "count-only" else ""
    return out


def shaped_row(out, row):
    if out["id"] in SHAPES:
        family, values, source = SHAPES[out["id"]]
    else:
        family, values, source = GPT_PAPER
    base, details = FAMILIES[family]
    for key in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab"):
        out[key] = row[key]
    out.update(family=family, base=base, details=DETAILS.get(out["id"], details), tied="true", params=row["params"])
    out["source"] = source or row["source"]
    out.update(values)
    if not out["vocab"] or not out["heads"]:
        sizes = ",".join(f"{k}={out[k] or 'N'}" for k in ("layers", "hidden", "heads", "vocab"))
        known = out["layers"] != ""
        source = next((s for k, s in MEASURED_SOURCES.items() if k in row["source"]), "")
        if out["id"] == "palm-540b":  # multi-query, parallel block, gated: not what gpt: would build
            known = source = ""
        return dict.fromkeys(COLUMNS, "") | {
            "id": out["id"], "aliases": out["aliases"], "source": source if known else "",
            "not_built": f"its vocabulary size is in none of the sources; pass gpt:{sizes}" if known else NO_SHAPE}
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    facts = {r["name"]: r for r in csv.DictReader(open(sys.argv[1], encoding="utf-8"))}
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in csv.DictReader(open(sys.argv[2], encoding="utf-8")):
        if row["kind"] != "model":
            continue
        out = dict.fromkeys(COLUMNS, "")
        more = EDITIONS.get(row["canonical_id"], "")
        out.update(id=row["canonical_id"], aliases=" | ".join(a for a in (row["aliases"], more) if a), hf_id=row["hf_id"],
                   note=NOTES.get(row["canonical_id"], ""))
        _, _, name = row["source"].partition("facts/models.csv row ")
        published = facts.get(name.strip())
        out["not_built"] = unbuilt(row)
        if out["not_built"]:
            if published:
                out["source"] = clean_source(published["source"], published["hf_id"])
        elif published:
            out = published_row(out, published)
        else:
            out = shaped_row(out, row)
        writer.writerow(out)


main()
