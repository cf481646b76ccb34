// nanotron's YAML.
#include <algorithm>

#include "src/adapt/import/launchers.hpp"

namespace preflop {

namespace {

// The decoder that the file describes; empty where it does not.
std::string nanotron_model(const Fields& f) {
  const std::string m = "model.model_config.";
  std::string out = "llama:";
  for (const auto& [key, path, needed] :
       {std::tuple{"layers", "num_hidden_layers", true}, std::tuple{"hidden", "hidden_size", true},
        std::tuple{"heads", "num_attention_heads", true}, std::tuple{"vocab", "vocab_size", true},
        std::tuple{"kv_heads", "num_key_value_heads", false}, std::tuple{"ffn", "intermediate_size", false},
        std::tuple{"nope_every", "no_rope_layer", false}, std::tuple{"rope_theta", "rope_theta", false},
        std::tuple{"norm_eps", "rms_norm_eps", false}}) {
    const std::string value = f.value(m + path);
    if (value.empty() && needed) return "";
    if (!value.empty()) out += std::string(out.back() == ':' ? "" : ",") + key + "=" + value;
  }
  if (f.on(m + "tie_word_embeddings")) out += ",tied=true";
  if (f.on(m + "attention_bias")) out += ",qkv_bias=true";
  return out;
}

}  // namespace

Result<Request> import_nanotron(std::string_view text, const std::string& file) {
  Fields f("nanotron", file);
  if (Status s = read_yaml(text, file, f); !s) return s.error();
  Request out;
  read_rest_line(text, out);
  const bool ours = !out.keys.empty();
  if (Status s = f.read(out); !s) return s.error();
  const std::int64_t dp = std::max<std::int64_t>(1, f.number("parallelism.dp")),
                     micro = f.number("tokens.micro_batch_size"),
                     batch = product({micro, dp, f.number("tokens.batch_accumulation_per_replica")});
  f.put_number(out, "global_batch", "tokens.batch_accumulation_per_replica", batch);
  const std::int64_t steps = f.number("tokens.train_steps"), seq = f.number("tokens.sequence_length");
  if (!ours) f.put_number(out, "tokens", "tokens.train_steps", product({steps, batch, seq}));
  const bool tensor = f.number("parallelism.tp") > 1, pipeline = f.number("parallelism.pp") > 1;
  const std::string mode = f.value("parallelism.tp_mode"), engine = f.value("parallelism.pp_engine"),
                    grads = f.value("optimizer.accumulate_grad_in_fp32"), dtype = f.value("model.dtype"),
                    attention = f.value("model.model_config._attn_implementation");
  if (tensor) f.put(out, "sp", "parallelism.tp_mode", mode.empty() ? "false" : mode);
  const bool beside = f.on("parallelism.tp_linear_async_communication");
  if (tensor && beside) f.put(out, "tp_overlap", "parallelism.tp_linear_async_communication", "true");
  if (pipeline) f.put(out, "schedule", "parallelism.pp_engine", engine.empty() ? "gpipe" : engine);
  f.put(out, "recompute", "parallelism.recompute_layer", f.on("parallelism.recompute_layer") ? "full" : "none");
  if (dtype == "bf16")
    out.keys.emplace("precision", dtype);
  else if (!dtype.empty())
    f.put(out, "precision", "model.dtype", dtype);
  if (!grads.empty() && dtype != "fp32")
    f.put(out, "grad_dtype", "optimizer.accumulate_grad_in_fp32", grads == "fp32" || dtype.empty() ? grads : dtype);
  if (!attention.empty()) out.keys.emplace("attention", attention);
  out.keys.emplace("stack", "nanotron");
  const std::string model = nanotron_model(f);
  if (out.model.empty()) out.model = model;
  out.not_read = f.not_read();
  return out;
}

}  // namespace preflop
