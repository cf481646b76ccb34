#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/view/catalogue.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

struct NamedScalar {
  const char* name;
  const Scalar Stack::* value;
};
constexpr NamedScalar kScalars[] = {
    {"vocab_multiple", &Stack::vocab_multiple},     {"wgrad_dummy_width", &Stack::wgrad_dummy_width},
    {"head_wgrad_width", &Stack::head_wgrad_width}, {"gathered_input_kept", &Stack::gathered_input_kept},
    {"workspace_bytes", &Stack::workspace_bytes},   {"reserved_factor", &Stack::reserved_factor},
    {"context_bytes", &Stack::context_bytes},       {"communicator_bytes", &Stack::communicator_bytes}};

template <class Items, class Name>
std::string joined(const Items& items, Name&& to_name) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + std::string(to_name(item));
  return out;
}

}  // namespace

std::string stacks_text(const StackCatalogue& catalogue) {
  std::string out;
  for (const Stack& s : catalogue.all()) {
    out += s.full_name() + "\n";
    for (const std::string& part : text::wrapped(s.summary, 76)) out += "    " + part + "\n";
  }
  return out;
}

// What --recompute takes beside none, selective and full.
std::vector<std::string> policies_of(const Stack& s) {
  std::vector<std::string> out;
  for (const Segment& g : s.segments) {
    if (std::find(out.begin(), out.end(), g.name) == out.end()) out.push_back(g.name);
  }
  for (const RecomputeLayers layers : s.recompute_layers) out.emplace_back(name(layers));
  return out;
}

// A loss has a rule more where it is compiled.
std::vector<std::string> loss_names(const Stack& s) {
  std::vector<std::string> out;
  for (const LossRule& l : s.losses) {
    if (std::find(out.begin(), out.end(), name(l.kind)) == out.end()) out.emplace_back(name(l.kind));
  }
  return out;
}

std::string stack_card(const Stack& s) {
  std::string out;
  for (const std::string& line : text::wrapped(s.full_name() + ": " + s.summary, text::kColumns)) out += line + "\n";
  out += "\n";
  const auto row = [&](const char* label, const std::string& value) {
    bool first = true;
    for (const std::string& part : text::wrapped(value, 58)) {
      out += (first ? "  " + std::string(label) +
                          std::string(20 - std::min<std::size_t>(std::string(label).size(), 18), ' ')
                    : std::string(22, ' ')) +
             part + "\n";
      first = false;
    }
  };
  row("zero", joined(s.zero_allowed, [](int z) { return std::to_string(z); }) + "; " + std::to_string(s.zero_default) +
                  " when not given");
  row("schedules", joined(s.schedules, [](const std::string& n) { return n; }));
  row("attention", joined(s.kernels, [](AttentionKernel k) { return name(k); }));
  row("loss", joined(loss_names(s), [](const std::string& n) { return n; }));
  row("recompute", joined(policies_of(s), [](const std::string& n) { return n; }) +
                       (s.selective.empty() ? "" : "; selective is " + s.selective));
  if (!s.software.empty()) row("switches", joined(s.software, [](const std::string& n) { return n; }));
  row("optimizer step", joined(s.optimizer_implementations, [](const std::string& n) { return n; }));
  row("moments", joined(s.moments, [](Dtype d) { return name(d); }));
  row("dtypes", std::string(name(s.weight_dtype)) + " weights, " + name(s.grad_dtype) + " gradients, " +
                    name(s.master_dtype) + " master weights, " + name(s.moment_dtype) + " moments");
  out += "\n";
  for (const NamedScalar& scalar : kScalars) {
    const Scalar& v = s.*(scalar.value);
    if (!v.source.empty()) row(scalar.name, shortest(v.value) + ": " + v.source);
  }
  for (const std::string& source : s.sources) row("source", source);
  return out;
}

Json stack_json(const Stack& s) {
  Json scalars = Json::object();
  for (const NamedScalar& scalar : kScalars) {
    const Scalar& v = s.*(scalar.value);
    scalars[scalar.name] = {{"value", json_number(v.value)},
                            {"source", v.source.empty() ? Json(nullptr) : Json(v.source)}};
  }
  Json zero = Json::array(), schedules = Json::array(), kernels = Json::array(), losses = Json::array(),
       segments = Json::array(), moments = Json::array(), sources = Json::array();
  for (int z : s.zero_allowed) zero.push_back(z);
  for (const std::string& n : s.schedules) schedules.push_back(n);
  for (AttentionKernel k : s.kernels) kernels.push_back(name(k));
  for (const std::string& n : loss_names(s)) losses.push_back(n);
  for (const Dtype dtype : s.moments) moments.push_back(name(dtype));
  for (const std::string& n : policies_of(s)) segments.push_back(n);
  for (const std::string& n : s.sources) sources.push_back(n);
  return {{"schema", "preflop.stack/1"},
          {"name", s.name},
          {"generation", s.generation.empty() ? Json(nullptr) : Json(s.generation)},
          {"summary", s.summary},
          {"zero", zero},
          {"zero_default", s.zero_default},
          {"schedules", schedules},
          {"attention", kernels},
          {"loss", losses},
          {"recompute", segments},
          {"software", s.software},
          {"optimizer_implementations", s.optimizer_implementations},
          {"not_told_apart", s.not_told_apart},
          {"moments", moments},
          {"weight_dtype", name(s.weight_dtype)},
          {"grad_dtype", name(s.grad_dtype)},
          {"master_dtype", name(s.master_dtype)},
          {"moment_dtype", name(s.moment_dtype)},
          {"scalars", scalars},
          {"sources", sources}};
}

Json stacks_json(const StackCatalogue& catalogue) {
  Json stacks = Json::array();
  for (const Stack& s : catalogue.all()) stacks.push_back(stack_json(s));
  return {{"schema", "preflop.stacks/1"}, {"stacks", stacks}};
}

}  // namespace preflop
