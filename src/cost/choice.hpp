// Where a token's experts lie: how many ranks or nodes a copy of its row has to reach.
#pragma once

namespace preflop {

// top_k of `experts`, each set of them as likely as any other. With groups: `top_groups` of `groups` equal groups are
// chosen first, the experts among theirs (DeepSeek-V3's limit of nodes, arXiv:2412.19437 section 2.1.2). 0: no groups.
struct ExpertChoice {
  double experts = 1, top_k = 0, groups = 0, top_groups = 0;
};

// Expected number of `places` (ranks, nodes), each with an equal share of consecutive experts, on which at least one
// of a token's experts lies. Exact where places divide the groups, or groups the places; never above top_k.
double places_reached(const ExpertChoice& choice, double places);

}  // namespace preflop
