#include "src/cost/graphs.hpp"

#include <algorithm>

namespace preflop {

Graphed graphed(const Recipe& recipe) {
  if (recipe.cuda_graph == "full_iteration") return {1, 1, 1, 1};
  if (recipe.cuda_graph == "none") return {};
  const std::vector<std::string>& parts = recipe.cuda_graph_scope;
  const auto holds = [&](const char* part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end() ? 1.0 : 0.0;
  };
  constexpr double kRouter = 0.25, kPreprocess = 0.25;
  return {holds("attn"), holds("mamba"), holds("mlp"),
          kRouter * holds("moe_router") + kPreprocess * holds("moe_preprocess")};
}

}  // namespace preflop
