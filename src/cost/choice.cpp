#include "src/cost/choice.hpp"

#include <algorithm>
#include <cmath>

namespace preflop {

namespace {

// That none of `taken`, drawn from `all` without putting back, is one of `own`.
double missed(double all, double own, double taken) {
  double out = 1;
  for (double i = 0; i < taken; ++i) out *= std::max(all - own - i, 0.0) / std::max(all - i, 1.0);
  return out;
}

// That `hits` of `own` are among `taken` drawn from `all`.
double hypergeometric(double all, double own, double taken, double hits) {
  double out = 1;  // C(own, hits) C(all - own, taken - hits) / C(all, taken), factor by factor
  for (double i = 0; i < hits; ++i) out *= (own - i) / (i + 1) * (taken - i) / (all - i);
  for (double i = 0; i < taken - hits; ++i) out *= std::max(all - own - i, 0.0) / (all - hits - i);
  return out;
}

}  // namespace

double places_reached(const ExpertChoice& c, double places) {
  if (c.groups <= 0 || c.top_groups <= 0 || c.top_groups >= c.groups)
    return places * (1 - missed(c.experts, c.experts / places, c.top_k));
  const double group = c.experts / c.groups;
  const double candidates = group * c.top_groups;
  if (places >= c.groups) {
    const double open = places * c.top_groups / c.groups;
    return open * (1 - missed(candidates, candidates / open, c.top_k));
  }
  const double own = std::max(std::floor(c.groups / places + 0.5), 1.0);  // groups of one place
  double none = 0;
  for (double hits = 0; hits <= std::min(own, c.top_groups); ++hits)
    none += hypergeometric(c.groups, own, c.top_groups, hits) * missed(candidates, hits * group, c.top_k);
  return places * (1 - none);
}

}  // namespace preflop
