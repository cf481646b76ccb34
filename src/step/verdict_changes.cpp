#include "src/step/verdict_changes.hpp"

#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

struct Choice {
  std::string text;
  Recipe recipe;
};

void recompute_choices(const Recipe& r, std::vector<Choice>& out) {
  if (r.given.count("recompute") != 0) return;
  for (const RecomputeKind kind : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    if (kind == r.recompute.kind) continue;
    Choice c{"", r};
    c.recipe.recompute = {};
    c.recipe.recompute.kind = kind;
    c.text = "recompute=" + recompute_text(c.recipe.recompute);
    out.push_back(std::move(c));
  }
}

void size_choices(const Recipe& r, std::vector<Choice>& out) {
  const auto add = [&](const char* key, std::int64_t value, std::int64_t Recipe::* field) {
    Choice c{key + std::string("=") + std::to_string(value), r};
    c.recipe.*field = value;
    out.push_back(std::move(c));
  };
  const bool doubled = r.global_batch % (2 * r.micro_batch * r.layout.dp) == 0;
  if (r.given.count("micro_batch") == 0 && doubled) add("micro_batch", 2 * r.micro_batch, &Recipe::micro_batch);
  if (r.given.count("seq") == 0) {
    add("seq", 2 * r.seq, &Recipe::seq);
    if (r.seq % 2 == 0) add("seq", r.seq / 2, &Recipe::seq);
  }
}

void state_choices(const Recipe& r, std::vector<Choice>& out) {
  if (r.given.count("grad_dtype") == 0 && r.weight_dtype == Dtype::bf16) {
    const bool wide = r.grad_dtype == Dtype::fp32;
    Choice c{wide ? "grad_dtype=bf16" : "grad_dtype=fp32", r};
    c.recipe.grad_dtype = wide ? Dtype::bf16 : Dtype::fp32;
    out.push_back(std::move(c));
  }
  if (r.given.count("zero") != 0 || r.layout.dp * r.layout.cp == 1) return;
  for (const int zero : {0, 1, 2, 3}) {
    if (zero == r.layout.zero) continue;
    Choice c{"zero=" + std::to_string(zero), r};
    c.recipe.layout.zero = zero;
    out.push_back(std::move(c));
  }
}

}  // namespace

std::vector<VerdictChange> verdict_changes(const Analysed& a, const Cluster& cluster, Verdict now, std::size_t most) {
  std::vector<VerdictChange> out;
  if (now == Verdict::unknown) return out;
  std::vector<Choice> choices;
  recompute_choices(a.recipe, choices);
  size_choices(a.recipe, choices);
  state_choices(a.recipe, choices);
  for (const Choice& choice : choices) {
    if (out.size() == most) break;
    const Result<Analysed> other = analyse_recipe(*a.model, *a.stack, choice.recipe);
    if (!other) continue;  // not legal here
    const MemoryEstimate<double> memory = memory_estimate<double>(*other, cluster);
    if (memory.verdict == now || !memory.margin) continue;
    out.push_back({choice.text, memory.verdict, memory.margin->number()});
  }
  return out;
}

}  // namespace preflop
