#include "src/adapt/question.hpp"

#include <algorithm>
#include <cstdlib>

#include "src/adapt/recipe_keys.hpp"
#include "src/base/units.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kDefaultBatchTokens = std::int64_t{4} << 20;  // 4 Mi tokens a step
constexpr std::int64_t kTuningBatch = 64;                            // sequences, of fine-tuning

bool tunes(const Request& request) { return text_of(request, "samples") != nullptr; }
std::int64_t default_batch_tokens(const Request& request, const Recipe& recipe) {
  return tunes(request) ? kTuningBatch * recipe.seq : kDefaultBatchTokens;
}

std::string digits(std::int64_t v) { return std::to_string(v); }

// A batch in tokens as sequences that can be shared out many ways. Ranks of data parallelism and stages beside each
// other divide both the number of GPUs and the batch, so their greatest common divisor says how many layouts a batch
// leaves: it is a multiple of the largest power of two times what the number of GPUs has beside powers of two (which
// tensor and context parallelism cannot divide out) that is near enough to what is wanted.
std::int64_t shareable_batch(const SetBatch& set_batch, Recipe probe, std::int64_t gpus, bool given) {
  // A batch that is only assumed may be nearly a quarter off: with 490 sequences 1,568 GPUs have no layout of a 70B as
  // good as with 392, smaller as that is. A given one is kept to.
  const auto near = [&](std::int64_t batch, std::int64_t wanted) {
    const std::int64_t off = std::abs(batch - wanted);
    return given ? off * 32 <= wanted : off * 4 < wanted;
  };
  std::int64_t odd = gpus;
  while (odd % 2 == 0) odd /= 2;
  const auto of_unit = [&](std::int64_t unit) {
    probe.layout.dp = unit;
    set_batch(probe);
    return probe.global_batch;
  };
  const std::int64_t wanted = of_unit(1);
  for (std::int64_t unit = gpus; unit > odd; unit /= 2) {
    if (unit / 2 > wanted) continue;
    const std::int64_t batch = of_unit(unit);
    if (near(batch, wanted)) return batch;
  }
  return of_unit(odd);
}

Status read_sizes(const Request& request, Recipe& recipe) {
  Layout& l = recipe.layout;
  const std::pair<const char*, std::int64_t*> sizes[] = {{"tp", &l.tp}, {"pp", &l.pp},    {"vpp", &l.vpp},
                                                         {"cp", &l.cp}, {"ep", &l.ep},    {"etp", &l.etp},
                                                         {"dp", &l.dp}, {"hsdp", &l.hsdp}};
  for (const auto& [key, slot] : sizes) {
    const auto size = size_key(request, key);
    if (!size) return size.error();
    if (*size) *slot = **size;
  }
  if (const std::string* text = text_of(request, "zero")) {
    if (text->size() != 1 || (*text)[0] < '0' || (*text)[0] > '3')
      return Error{"--zero", "'" + *text + "' is no stage", "0, 1, 2 or 3"};
    l.zero = (*text)[0] - '0';
  }
  const auto sp = switch_key(request, "sp");
  if (!sp) return sp.error();
  l.sp = sp->value_or(false);
  auto split = list_key(request, "layers_per_stage");
  if (!split) return split.error();
  l.layers_per_stage = std::move(split).value();
  if (const std::string* text = text_of(request, "schedule")) l.schedule = *text;
  return Nothing{};
}

}  // namespace

Result<SetBatch> batch_rule(const Request& request, const Recipe& recipe, bool& given) {
  const std::string* text = text_of(request, "global_batch");
  given = text != nullptr;
  std::int64_t tokens = default_batch_tokens(request, recipe);
  if (text != nullptr) {
    const auto batch = parse_batch(*text, "--global-batch");
    if (!batch) return batch.error();
    if (batch->amount.get() == 0) return Error{"--global-batch", "an empty batch", "1 sequence or more"};
    if (!batch->in_tokens) return SetBatch([n = batch->amount.get()](Recipe& r) { r.global_batch = n; });
    if (batch->amount.get() % recipe.seq != 0 && batch->amount.get() < recipe.seq) {
      return Error{"--global-batch",
                   digits(batch->amount.get()) + " tokens are less than one sequence of " + digits(recipe.seq),
                   "at least one sequence"};
    }
    tokens = batch->amount.get();
  }
  return SetBatch([tokens](Recipe& r) {
    const std::int64_t unit = r.seq * r.micro_batch * r.layout.dp * (r.layout.vpp > 1 ? r.layout.pp : 1);
    const std::int64_t units = std::max<std::int64_t>(1, (2 * tokens + unit) / (2 * unit));
    r.global_batch = units * unit / r.seq;
  });
}

std::int64_t shared_batch(const SetBatch& set_batch, Recipe probe, std::int64_t gpus, bool given) {
  probe.layout.vpp = 1;
  set_batch(probe);
  return probe.given.contains("dp") ? probe.global_batch : shareable_batch(set_batch, probe, gpus, given);
}

void assume_batch(const Request& request, Recipe& recipe) {
  recipe.assumed.push_back("global_batch=" + digits(recipe.global_batch) +
                           (tunes(request) ? " (64 sequences" : " (4 Mi tokens") +
                           ", to the nearest that can be shared out)");
}

bool leaves_layout_open(const Request& request) {
  for (const char* key :
       {"tp", "pp", "cp", "ep", "etp", "zero", "dp", "vpp", "hsdp", "layers_per_stage", "sp", "schedule"}) {
    if (text_of(request, key) != nullptr) return false;
  }
  return true;
}

Result<Question> ask(const Request& request, const Draft& draft) {
  Question out;
  out.model = draft.model.get();
  out.stack = draft.stack;
  out.cluster = draft.cluster;
  out.recipe = draft.recipe;
  Recipe& r = out.recipe;
  r.layout.zero = out.stack->zero_default;
  if (Status s = read_sizes(request, r); !s) return s.error();
  const auto recompute = recompute_key(request);
  if (!recompute) return recompute.error();
  if (*recompute) r.recompute = **recompute;
  if (Status s = check_recompute(*out.model, *out.stack, r); !s) return s.error();
  bool batch_given = false;
  const auto set_batch = batch_rule(request, r, batch_given);
  if (!set_batch) return set_batch.error();
  r.global_batch = shared_batch(*set_batch, r, out.cluster.gpus, batch_given);
  if (!batch_given) assume_batch(request, r);
  if (r.tokens && *r.tokens < static_cast<double>(r.global_batch) * static_cast<double>(r.seq))
    return Error{"--tokens", "less than one step of " + digits(r.global_batch) + " sequences",
                 "more tokens, or a smaller --global-batch"};
  return out;
}

void assume_planned(const Question& q, Recipe& r, const std::string& how) {
  std::erase_if(r.assumed, [](const std::string& line) {
    return line.starts_with("micro_batch=") || line.starts_with("loss=") || line.starts_with("recompute=");
  });
  const Layout& l = r.layout;
  std::string line;
  const auto add = [&](const char* key, std::int64_t value, bool shown) {
    if (!q.fixed(key) && shown) line += std::string(line.empty() ? "" : " ") + key + "=" + digits(value);
  };
  add("tp", l.tp, true);
  add("pp", l.pp, true);
  add("vpp", l.vpp, l.vpp > 1);
  add("cp", l.cp, l.cp > 1);
  add("ep", l.ep, has_experts(*q.model));
  add("etp", l.etp, has_experts(*q.model));
  add("dp", l.dp, true);
  add("zero", l.zero, true);
  add("hsdp", l.hsdp, l.hsdp > 0);
  add("micro_batch", r.micro_batch, true);
  r.assumed.push_back(line + " (" + how + ")");
  if (!q.fixed("recompute")) {
    std::string text = r.recompute.kind == RecomputeKind::none        ? "none"
                       : r.recompute.kind == RecomputeKind::selective ? "selective"
                       : r.recompute.kind == RecomputeKind::full      ? "full"
                                                                      : "";
    for (const std::string& module : r.recompute.modules) text += (text.empty() ? "" : ",") + module;
    r.assumed.push_back("recompute=" + text + " (planned)");
  }
  if (!q.fixed("loss") && q.stack->losses.size() > 1)
    r.assumed.push_back(std::string("loss=") + name(r.loss) + " (planned)");
}

}  // namespace preflop
