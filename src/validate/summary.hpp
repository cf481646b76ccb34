// Errors of many rows in a few figures: per source and metric, and over all sources.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/validate/validate.hpp"

namespace preflop {

// Fractions throughout. Empty = undefined: no row was predicted, or the figure has no meaning there.
struct Summary {
  std::string source;  // file stem; "all": every source
  std::string metric;
  std::string convention;  // of TFLOP/s or MFU that were converted: those rows are summed up apart; else empty
  std::size_t n = 0;       // predicted
  std::size_t skipped = 0;
  std::optional<double> mape, median, p90, max;  // of |error|; median and p90 by nearest rank
  std::optional<double> bias;                    // mean of error: above 0 predicts too much
  std::optional<double> coverage, half_width;    // of prediction bands, once there are any
  std::optional<double> naive_mape;              // of one constant MFU per source, fitted in hindsight
  // fit.verdict only, of rows that ran and of rows that ran out of memory. A false fit is an out of memory that is said
  // to fit; tight is neither right nor wrong. Where another measured row says the contrary, a false fit is not counted.
  std::optional<std::size_t> false_fit, false_oom, tight, contradicted;
  std::optional<std::size_t> oom, tight_oom;       // rows that ran out of memory; of them said to be tight
  std::optional<std::size_t> doubled, doubled_no;  // rows with the largest micro-batch; of them twice it does not fit
};

// Fewer predicted rows than this have no naive baseline.
inline constexpr std::size_t kLeastNaive = 10;

struct SummaryOptions {
  bool nothing_assumed = false;  // only rows whose recipe the source states in full
  bool apart = false;            // only the rows that stand apart, by source and chip; else only the others
};
// Sorted by source, metric and convention, "all" first. Of rows that stand apart also "all TPUs".
std::vector<Summary> summarise(const std::vector<Entry>& entries, const SummaryOptions& options = {});

// The mean |error| of predicting every row with the median MFU of the others: leave-one-out, so that the
// constant never saw the row. Input: the MFU of each row. Empty below kLeastNaive.
std::optional<double> naive_error(const std::vector<double>& mfus);

// How rows became recipes: the steering figure of the mapping.
struct Mapping {
  std::size_t rows = 0;
  std::size_t stated = 0;  // state model or shape, GPU, count, sequence, micro-batch and kind, and measure something
  std::size_t duplicates = 0;  // of these, the same run as another row: counted once
  std::size_t legal = 0;
  std::size_t not_built = 0;
  std::map<std::string, std::size_t> other;                         // "source: reason" of the rest of them
  std::map<std::pair<SkipKind, std::string>, std::size_t> reasons;  // of all rows that are not predicted

  void add(const RowVerdict& verdict, const std::string& source);
  void add(const Mapping& other);
  // legal / (legal + other); empty when there is neither.
  std::optional<double> share() const;
};

struct Report {
  std::vector<Entry> entries;
  Mapping mapping;

  void append(Report&& other);
};

}  // namespace preflop
