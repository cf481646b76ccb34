// How far off rows are that a fit has not seen, and whether the band that the other rows make holds them.
#pragma once

#include <string>
#include <vector>

#include "tools/fit/solve.hpp"

namespace preflop::fit {

struct Score {
  std::vector<double> errors;  // predicted / measured - 1
  double mape() const;
  double bias() const;
  void print(const std::string& name) const;
};

// Rows that are left out together: those of one source, of one GPU, or of one eighth of the models.
struct Folds {
  std::vector<std::size_t> of;  // of each row
  std::size_t count = 0;
};
Folds folds_by(const std::vector<Run>& runs, const std::string& which);  // model, source or gpu

// Errors of every row with the parameters as they are, and fitted without the rows of its fold.
std::vector<double> errors_of(const TimeParameters& parameters, const std::vector<Run>& runs);
std::vector<double> left_out(const TimeParameters& start, const std::vector<Run>& runs, const Folds& folds);

// 10 % and 90 % of measured over predicted, the ranks of split-conformal prediction. Input: at least one ratio.
struct Ends {
  double low = 0, high = 0;
  double half_width() const { return (high - low) / 2; }
  bool holds(double error) const { return low <= 1 / (1 + error) && 1 / (1 + error) <= high; }
};
Ends conformal_ends(std::vector<double> ratios);

// Whether an owner's slow end is apart for runs that fill their memory.
bool has_full_end(const TimeParameters& parameters, const std::string& owner, bool moe);

// The band of every row that the left-out errors of the rows of other folds make: of the most special owner of its
// stack that has a band of its own and ten such rows.
std::vector<Ends> bands_of_others(const TimeParameters& parameters, const std::vector<Run>& runs, const Folds& folds,
                                  const std::vector<double>& errors);

// How far off rows of a GPU are that no fit has seen, stacks as they are and parameters that it shares with other GPUs
// fitted to these, with as much known of it as `kKnowledge` lists.
inline constexpr Known kKnowledge[] = {Known::tables, Known::sheet, Known::new_architecture};
struct Unseen {
  std::string gpu;
  std::vector<const Run*> rows;
  Score all[std::size(kKnowledge)];      // of `rows`, in their order
  Score trusted[std::size(kKnowledge)];  // of rows that nothing is said to be wrong with
};
std::vector<Unseen> unseen_gpus(const TimeParameters& fitted, const std::vector<Run>& runs);  // of ten rows or more

// docs/fit.md: what is fitted, to how many rows, from which prior; and how far rows are off that no fit saw.
// `apart`: the runs that stand apart, in a section of their own.
std::string page(const TimeParameters& parameters, const std::vector<Run>& runs, const std::vector<Run>& apart);

}  // namespace preflop::fit
