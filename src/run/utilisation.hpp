// Measured speed -> utilisation under every FLOP convention, beside what the engine predicts, with what
// could explain the difference. Fractions are fractions, rates SI: tokens/s, FLOP/s, seconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "preflop/machine.hpp"
#include "src/run/estimate.hpp"

namespace preflop {

// What was measured, as one of these.
struct Measurement {
  enum class Kind : std::uint8_t { tokens_per_second, tokens_per_second_per_gpu, step_seconds, flops_per_gpu };
  Kind kind = Kind::tokens_per_second;
  double value = 0;                        // > 0
  const Convention* convention = nullptr;  // of flops_per_gpu: what these FLOP/s count
};

// A dense or sparse rate of a catalogue's GPU that equals a given number to 0.5 %.
struct KnownPeak {
  std::string gpu;
  std::string field;   // "bf16_sparse_headline", "fp8_flops"
  std::string source;  // of the datum
  double value = 0;
  bool sparse = false;
};

struct Peak {
  double flops = 0;    // what MFU is counted against: one GPU, dense unless the user's own number is unknown
  std::string field;   // "bf16_flops"; "given" for the user's own number
  std::string source;  // where the number comes from
  std::string rung;    // "exact", "same_chip", ...: how the catalogue knows it
  std::optional<double> catalogue;  // the GPU's dense peak of this precision
  std::optional<double> given;      // --peak
  std::vector<KnownPeak> known;     // what the given number is, this GPU's own first
};

struct ConventionUse {
  const Convention* convention = nullptr;
  double flops_per_token = 0;
  double flops_per_gpu = 0;            // FLOP/s that the measured speed amounts to
  double mfu = 0;                      // of Peak::flops
  std::optional<double> mfu_of_given;  // of --peak, where that is not what MFU is counted against
};

// One thing that could explain a number. `kind` is stable, `text` a sentence.
struct Cause {
  std::string kind;
  std::string text;
};

struct Utilisation {
  Measurement measured;
  double tokens_per_second = 0;
  double tokens_per_second_per_gpu = 0;
  double step_seconds = 0;
  Peak peak;
  std::vector<ConventionUse> conventions;  // in the table's order; palm first
  double mfu = 0;                          // palm
  std::optional<double> predicted_mfu;     // palm; empty when the machine's rates are unknown
  std::optional<double> predicted_tokens_per_second_per_gpu;
  std::optional<double> unexplained;  // predicted - measured
  std::vector<Cause> causes;          // the likeliest first
};

// What a number may be meant as: the dense and sparse rates of the catalogue within 0.5 %, `own` first.
std::vector<KnownPeak> known_peaks(double flops, const Gpu& own, const MachineCatalogue& machines);

// `e` is the estimate of the same recipe without a given MFU. Errors: no dense peak known and none given,
// a measurement that no machine reaches (a wrong unit).
Result<Utilisation> utilisation(const Analysed& a, const Estimate& e, const Measurement& measured,
                                std::optional<double> peak, const MachineCatalogue& machines);

}  // namespace preflop
