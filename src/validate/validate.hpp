// Predicted against measured: every quantity that a row measured becomes one entry, skipped ones too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/adapt/row_request.hpp"
#include "src/run/estimate.hpp"
#include "src/validate/contradictions.hpp"

namespace preflop {

struct Entry {
  std::string id;
  std::string source;  // stem of the row's file
  std::string job;     // what is trained on what, all but the layout; empty: not predicted
  std::string layout;  // its sizes, schedule and recomputation: one release's figure beside another's has the same
  std::string group;   // whose errors belong together: "time dense", "time moe", "memory megatron allocated",
                       // "memory allocated or reserved", "memory device", "fit"
  std::string metric;  // time.step_seconds, memory.allocated|reserved|device, fit.verdict
  std::optional<double> measured;   // SI; empty: skipped before it could be converted, or a verdict
  std::optional<double> predicted;  // SI; empty: skipped, or a verdict
  std::optional<double> low, high;  // of the prediction band; empty: there is none
  std::string measured_verdict;     // ran | oom
  std::string predicted_verdict;    // fits | tight | no
  std::optional<double>
      error;  // predicted / measured - 1; a verdict: 0 right, 1 said to fit but did not, -1 the reverse
  std::shared_ptr<const std::vector<std::string>> assumed, not_modelled, flags;  // of the row, shared by its entries
  std::string convention;  // of TFLOP/s or MFU that were converted; empty: measured as such
  Skip skip;
  std::shared_ptr<const Entry> unscored;  // of a row that repeats another, which is scored: what this one would be
  double model_flops_rate = 0;            // time: palm FLOPs a step / (GPUs x peak): seconds at an MFU of 1
  // Memory: whose residuals are alike ("megatron reserved", "megatron-deepspeed device sm70"), the model, and the
  // part of the prediction that is proportional to a fitted parameter, with the parameter's name and the source to
  // whose rows it was fitted; 0 and empty where none was.
  std::string like, model, fitted, fitted_to;
  double fitted_part = 0;
  std::string apart;          // rows of JAX stacks are summed up apart, by this chip; empty: with all others
  bool contradicted = false;  // fit.verdict: another measured row says the contrary (data/contradictions.csv)
  // fit.verdict, of a source that prints the largest micro-batch that ran: what twice of it is predicted to do.
  std::string doubled_verdict;
};

// What a row says about the mapping, apart from its entries.
struct RowVerdict {
  bool states_enough = false;  // model or shape, GPU, count, sequence, micro-batch and kind of training
  bool measures = false;
  bool duplicate = false;
  Skip skip;  // of the recipe, before any reading is converted
};

// A row with its recipe and prediction, for --explain.
struct Explained {
  RowRequest row;
  std::optional<Estimate> estimate;  // absent when skipped
  std::optional<Contradiction> contradiction;
  std::vector<Entry> entries;
};

class Validator {
 public:
  // Both must outlive the validator.
  static Result<Validator> make(const Catalogues& catalogues, const RowWords& words);

  // Appends one entry for each quantity that the row measured.
  RowVerdict add(const Row& row, const std::string& stem, std::vector<Entry>& entries);
  Explained explain(const Row& row, const std::string& stem);
  // The recipe that a row becomes.
  RowRequest request(const Row& row, const std::string& stem) const;

 private:
  struct Predicted {
    Skip skip;
    std::optional<double> seconds, low, high;
    std::string no_time, job, layout;
    double allocated = 0, reserved = 0, device = 0;
    double first_node = 0;  // device memory of the fullest stage that has a GPU on the first node
    struct Kind {
      double band = 0;  // half-width of its band, a fraction; 0: none is known
      std::string like, fitted, fitted_to;
      double fitted_part = 0;
    };
    Kind of_allocated, of_reserved, of_device;
    std::string model;
    Verdict verdict = Verdict::unknown;
    double tokens = 0, gpus = 0, peak = 0, palm = 0;          // palm: FLOPs per token
    std::vector<std::pair<std::string, double>> conventions;  // FLOPs per token
    std::vector<std::string> assumed;                         // the stack, where the row has none
  };
  Validator(const Catalogues& catalogues, const RowWords& words) : catalogues_(&catalogues), words_(&words) {}

  const SourceRules& rules(const std::string& stem) const;
  const Predicted& predict(const RowRequest& row);
  static void keep_kinds(Predicted& p, const Estimate& e, const Stack& stack);
  Entry entry(const Reading& reading, const Predicted& p, const RowRequest& row) const;
  void add_unscored(const Row& row, const std::string& stem, std::vector<Entry>& entries);

  const Catalogues* catalogues_;
  const RowWords* words_;
  std::map<std::string, SourceRules, std::less<>> sources_;
  std::map<std::string, Contradiction, std::less<>> contradictions_;  // by row
  std::unordered_map<std::string, Predicted> cache_;                  // recipes repeat: by their whole text
};

// Whether rows of this stack are summed up and fitted apart from all others: they run on other chips, or as other
// software on the same.
bool stands_apart(std::string_view stack);

// pose() of a row's request, with the machine's values that the row states.
Result<Problem> row_problem(const RowRequest& row, const Catalogues& catalogues);
// row_problem() and estimate() of a row's request, with the machine's values that the row states.
Result<Estimate> estimate_row(const RowRequest& row, const Catalogues& catalogues);

}  // namespace preflop
