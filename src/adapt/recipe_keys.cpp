#include "src/adapt/recipe_keys.hpp"

#include <algorithm>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/stack/optimizer.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/step/compute.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kLargestSize = 10'000'000;

void assume(Recipe& recipe, std::string_view key, std::string_view value, std::string_view why) {
  std::string line = std::string(key) + "=" + std::string(value);
  if (!why.empty()) line += " (" + std::string(why) + ")";
  recipe.assumed.push_back(std::move(line));
}

// A dtype key: the given one, else the default, which is noted.
Status dtype_key(const Request& request, Recipe& recipe, std::string_view key, Dtype fallback, std::string_view why,
                 Dtype& out) {
  const std::string* text = text_of(request, key);
  if (text == nullptr) {
    out = fallback;
    assume(recipe, key, name(fallback), why);
    return Nothing{};
  }
  const std::optional<Dtype> dtype = dtype_of(*text);
  if (!dtype) return Error{flag_of(key), "no dtype " + text::quoted(*text), text::list(dtype_names())};
  // Narrower weights and gradients belong to --precision, narrower moments to --optimizer.
  std::vector<std::string> stored = {"fp32", "bf16", "fp16"};
  if (key == "master_dtype") stored.emplace_back("none");
  if (key == "moment_dtype") stored.emplace_back("fp8");
  if (std::find(stored.begin(), stored.end(), *text) == stored.end())
    return Error{flag_of(key), "nothing here is stored in " + *text, text::list(stored)};
  out = *dtype;
  return Nothing{};
}

Status read_precision(const Request& request, Recipe& recipe) {
  const std::string* text = text_of(request, "precision");
  if (text == nullptr) {
    assume(recipe, "precision", "bf16", "");
    recipe.precision = "bf16";
    return Nothing{};
  }
  std::vector<std::string> known = unscaled_precision_names();
  for (const std::string& scaled : scaled_precision_names()) known.push_back(scaled);
  if (std::find(known.begin(), known.end(), *text) == known.end())
    return text::unknown_name("--precision", "precision", *text, known);
  recipe.precision = *text;
  return Nothing{};
}

Status read_dtypes(const Request& request, const Stack& stack, Recipe& recipe) {
  const bool full = recipe.precision == "fp32";
  const Dtype compute = full ? Dtype::fp32 : recipe.precision == "fp16" ? Dtype::fp16 : stack.weight_dtype;
  const std::string why = full ? "fp32 training" : "stack " + stack.name;
  const bool stack_follows = stack.grad_dtype == stack.weight_dtype;  // gradients in the weights' own type
  const Dtype grad = full ? Dtype::fp32 : stack_follows ? compute : stack.grad_dtype;
  if (Status s = dtype_key(request, recipe, "weight_dtype", compute, why, recipe.weight_dtype); !s) return s;
  if (Status s = dtype_key(request, recipe, "grad_dtype", grad, why, recipe.grad_dtype); !s) return s;
  if (Status s =
          dtype_key(request, recipe, "master_dtype", full ? Dtype::none : stack.master_dtype, why, recipe.master_dtype);
      !s)
    return s;
  return dtype_key(request, recipe, "moment_dtype", stack.moment_dtype, why, recipe.moment_dtype);
}

Status read_kernels(const Request& request, const Stack& stack, Recipe& recipe) {
  if (const std::string* text = text_of(request, "attention")) {
    const auto kernel = attention_kernel_of(*text);
    if (!kernel) return text::unknown_name("--attention", "attention kernel", *text, attention_kernel_names());
    recipe.attention = *kernel;
  } else {
    recipe.attention = stack.kernels.front();
    assume(recipe, "attention", name(recipe.attention), "stack " + stack.name);
  }
  if (const std::string* text = text_of(request, "loss")) {
    const auto loss = loss_kind_of(*text);
    if (!loss) return text::unknown_name("--loss", "loss", *text, loss_kind_names());
    recipe.loss = *loss;
  } else {
    recipe.loss = stack.losses.front().kind;
    assume(recipe, "loss", name(recipe.loss), "stack " + stack.name);
  }
  return Nothing{};
}

Status read_mfu(const Request& request, Recipe& recipe) {
  const std::string* text = text_of(request, "mfu");
  if (text == nullptr) return Nothing{};
  const std::size_t at = text->find('@');
  const std::string convention = at == std::string::npos ? recipe.mfu_convention : text->substr(at + 1);
  if (find_convention(convention) == nullptr)
    return text::unknown_name("--mfu", "FLOP convention", convention, convention_names());
  recipe.mfu_convention = convention;
  const auto mfu = parse_fraction(std::string_view(*text).substr(0, at), "--mfu");
  if (!mfu) return mfu.error();
  if (*mfu <= 0) return Error{"--mfu", "an MFU of 0 never ends", "more than 0 %, at most 100 %"};
  recipe.mfu = *mfu;
  return Nothing{};
}

}  // namespace

std::string flag_of(std::string_view key) {
  std::string out = "--" + std::string(key);
  std::replace(out.begin() + 2, out.end(), '_', '-');
  return out;
}

const std::string* text_of(const Request& request, std::string_view key) {
  const auto it = request.keys.find(key);
  return it == request.keys.end() ? nullptr : &it->second;
}

Status check_keys(const Request& request) {
  for (const auto& [key, value] : request.keys) {
    const auto& table = request_keys();
    const auto it = std::find_if(table.begin(), table.end(), [&](const Key& k) { return key == k.name; });
    if (it == table.end()) {
      std::vector<std::string> known;
      for (const Key& k : table) known.emplace_back(k.name);
      return text::unknown_name("recipe", "key", key, known);
    }
    if (*it->not_built != '\0')
      return Error{flag_of(key), std::string(it->not_built) + ": not built yet", "leave it out"};
    if (value.empty()) return Error{flag_of(key), "an empty value", it->value};
  }
  return Nothing{};
}

Result<std::optional<std::int64_t>> size_key(const Request& request, std::string_view key) {
  const std::string* text = text_of(request, key);
  if (text == nullptr) return std::optional<std::int64_t>();
  const auto count = parse_count(*text, flag_of(key));
  if (!count) return count.error();
  if (count->get() < 1 || count->get() > kLargestSize) {
    return Error{flag_of(key), text::quoted(*text) + " is no size",
                 "a whole number from 1 to " + text::grouped(kLargestSize)};
  }
  return std::optional<std::int64_t>(count->get());
}

Result<std::optional<bool>> switch_key(const Request& request, std::string_view key) {
  const std::string* text = text_of(request, key);
  if (text == nullptr) return std::optional<bool>();
  if (*text == "true" || *text == "on") return std::optional<bool>(true);
  if (*text == "false" || *text == "off") return std::optional<bool>(false);
  return Error{flag_of(key), text::quoted(*text) + " is neither on nor off", "true or false"};
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t end = std::min(list.find(',', from), list.size());
    out.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

Result<std::vector<std::int64_t>> list_key(const Request& request, std::string_view key) {
  std::vector<std::int64_t> out;
  const std::string* text = text_of(request, key);
  if (text == nullptr) return out;
  for (const std::string& part : parts_of(*text)) {
    const auto count = parse_count(part, flag_of(key));
    if (!count) return count.error();
    if (count->get() < 1 || count->get() > kLargestSize)
      return Error{flag_of(key), "a stage without layers", "counts of 1 or more, with commas"};
    out.push_back(count->get());
  }
  return out;
}

namespace {

// full:N, full:uniform:N, selective-layer, selective-layer:N. Empty: another word.
Result<std::optional<Recompute>> some_layers(std::string_view text) {
  static constexpr std::string_view kFirst = "full:", kUnits = "full:uniform:", kEvery = "selective-layer";
  const bool every = text == kEvery || text.starts_with("selective-layer:");
  if (!every && !text.starts_with(kFirst)) return std::optional<Recompute>();
  Recompute out;
  out.kind = RecomputeKind::full;
  const bool units = text.starts_with(kUnits);
  out.which = every ? RecomputeLayers::every : units ? RecomputeLayers::units : RecomputeLayers::first;
  out.layers = 2;  // every second layer, where no number is given
  if (text == kEvery) return std::optional<Recompute>(std::move(out));
  const auto layers = parse_count(text.substr(text.rfind(':') + 1), "--recompute");
  if (!layers) return layers.error();
  out.layers = layers->get();
  if (out.layers < 1 || out.layers > kLargestSize)
    return Error{"--recompute", text::quoted(text) + " names no layer", "a number of layers of 1 or more"};
  if (units && out.layers == 1) {  // each by itself
    out.which = RecomputeLayers::all;
    out.layers = 0;
  }
  return std::optional<Recompute>(std::move(out));
}

}  // namespace

Result<std::optional<Recompute>> recompute_key(const Request& request) {
  const std::string* text = text_of(request, "recompute");
  if (text == nullptr) return std::optional<Recompute>();
  auto some = some_layers(*text);
  if (!some || some->has_value()) return some;
  Recompute out;
  if (*text == "none") return std::optional<Recompute>(out);
  if (*text == "selective")
    out.kind = RecomputeKind::selective;
  else if (*text == "full")
    out.kind = RecomputeKind::full;
  else {
    out.kind = RecomputeKind::modules;
    out.modules = parts_of(*text);
  }
  return std::optional<Recompute>(out);
}

// One of a few words; the recipe's own value when it is not given.
Status word_key(const Request& request, const char* key, const std::vector<std::string>& words, std::string& out) {
  const std::string* text = text_of(request, key);
  if (text == nullptr) return Nothing{};
  if (std::find(words.begin(), words.end(), *text) == words.end())
    return text::unknown_name(flag_of(key), key, *text, words);
  out = *text;
  return Nothing{};
}

// The parts of a layer that CUDA graphs hold, in the order in which they run; each once.
Status read_graph_scope(const Request& request, Recipe& recipe) {
  const std::string* text = text_of(request, "cuda_graph_scope");
  if (text == nullptr) return Nothing{};
  const std::vector<std::string> named = parts_of(*text), parts = cuda_graph_parts();
  for (const std::string& part : named) {
    if (std::find(parts.begin(), parts.end(), part) == parts.end())
      return text::unknown_name("--cuda-graph-scope", "part", part, parts);
  }
  recipe.cuda_graph_scope = parts;
  std::erase_if(recipe.cuda_graph_scope,
                [&](const std::string& part) { return std::find(named.begin(), named.end(), part) == named.end(); });
  return Nothing{};
}

Status read_software(const Request& request, const Stack& stack, Recipe& recipe) {
  recipe.optimizer_implementation = stack.optimizer_implementations.front();
  if (Status s = word_key(request, "optimizer_implementation", optimizer_implementation_names(),
                          recipe.optimizer_implementation);
      !s)
    return s;
  if (Status s = word_key(request, "cp_comm", {"p2p", "a2a"}, recipe.cp_comm); !s) return s;
  if (Status s = word_key(request, "dispatcher", dispatcher_names(), recipe.dispatcher); !s) return s;
  const std::vector<std::string> graphs = {"none", "transformer_engine", "local", "full_iteration"};
  if (Status s = word_key(request, "cuda_graph", graphs, recipe.cuda_graph); !s) return s;
  if (Status s = read_graph_scope(request, recipe); !s) return s;
  for (const auto& [key, slot] :
       {std::pair{"dp_overlap", &recipe.dp_overlap}, std::pair{"tp_overlap", &recipe.tp_overlap},
        std::pair{"ep_overlap", &recipe.ep_overlap}, std::pair{"fused_experts", &recipe.fused_experts},
        std::pair{"fp8_attention", &recipe.fp8_attention}}) {
    const auto on = switch_key(request, key);
    if (!on) return on.error();
    *slot = on->value_or(*slot);
  }
  return Nothing{};
}

namespace {

// One word of --offload.
Status read_offloaded(std::string_view word, Offload& out) {
  const std::string_view what = word.substr(0, word.find('='));
  const std::string_view value = what.size() < word.size() ? word.substr(what.size() + 1) : std::string_view();
  const Error unknown{"--offload", text::quoted(word) + " is nothing that can be kept on the host",
                      "none, optimizer, optimizer=SHARE, params or activations[=LAYERS], with commas"};
  if (value == "nvme") return Error{"--offload", "no stack here keeps " + std::string(what) + " on NVMe", "cpu"};
  if (what == "params" && (value.empty() || value == "cpu")) {
    out.params = true;
  } else if (what == "optimizer" && (value.empty() || value == "cpu")) {
    out.optimizer = 1;
  } else if (what == "optimizer") {
    const Result<double> share = parse_decimal(value);
    if (!share || !(*share > 0) || *share > 1)
      return Error{"--offload", text::quoted(value) + " is no share of the optimizer states", "above 0, at most 1"};
    out.optimizer = *share;
  } else if (what == "activations" && what.size() == word.size()) {
    out.activations = Offload::kAllLayers;
  } else if (what == "activations") {
    const auto layers = parse_count(value, "--offload");
    if (!layers) return layers.error();
    if (layers->get() < 1 || layers->get() > kLargestSize)
      return Error{"--offload", text::quoted(value) + " is no number of layers", "1 or more"};
    out.activations = layers->get();
  } else {
    return unknown;
  }
  return Nothing{};
}

Status read_offload(const Request& request, Recipe& recipe) {
  const std::string* text = text_of(request, "offload");
  if (text == nullptr || *text == "none") return Nothing{};
  for (const std::string& word : parts_of(*text)) {
    if (Status s = read_offloaded(word, recipe.offload); !s) return s;
  }
  return Nothing{};
}

}  // namespace

Status read_numerics(const Request& request, const Stack& stack, Recipe& recipe) {
  if (Status s = read_precision(request, recipe); !s) return s;
  if (Status s = read_dtypes(request, stack, recipe); !s) return s;
  if (Status s = read_kernels(request, stack, recipe); !s) return s;
  if (Status s = read_software(request, stack, recipe); !s) return s;
  if (Status s = read_offload(request, recipe); !s) return s;
  const auto compile = switch_key(request, "compile");
  if (!compile) return compile.error();
  recipe.compile = compile->value_or(stack.compile_default);
  if (!*compile && stack.compile_default) assume(recipe, "compile", "true", "stack " + stack.name);
  if (const std::string* text = text_of(request, "optimizer")) {
    const Result<const Optimizer*> optimizer = find_optimizer(*text);
    if (!optimizer) return optimizer.error();
    recipe.optimizer = (*optimizer)->name;
  } else {
    assume(recipe, "optimizer", "adamw", "");
  }
  return read_mfu(request, recipe);
}

}  // namespace preflop
