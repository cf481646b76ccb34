#include "src/adapt/optimizer_words.hpp"

namespace preflop {

namespace {

struct OptimizerWord {
  const char* optimizer;
  const char* megatron;
};
// The first of an optimizer is the one that is written. dist_muon: Muon whose states the ranks share.
constexpr OptimizerWord kOptimizerWords[] = {{"adamw", "adam"}, {"sgd-momentum", "sgd"}, {"sgd", "sgd"},
                                             {"muon", "muon"},  {"muon", "dist_muon"},   {"lion", "lion"}};

}  // namespace

std::string megatron_optimizer(std::string_view optimizer) {
  for (const OptimizerWord& w : kOptimizerWords) {
    if (optimizer == w.optimizer) return w.megatron;
  }
  return "";
}

std::string optimizer_of_megatron(std::string_view name) {
  for (const OptimizerWord& w : kOptimizerWords) {
    if (name == w.megatron) return w.optimizer;
  }
  return "";
}

std::vector<std::string> megatron_optimizers() {
  std::vector<std::string> out;
  for (const OptimizerWord& w : kOptimizerWords) {
    if (out.empty() || out.back() != w.optimizer) out.emplace_back(w.optimizer);
  }
  return out;
}

}  // namespace preflop
