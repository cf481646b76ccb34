// How long a run is: tokens, or samples and epochs.
#include <cmath>

#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/run_reader.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/model/builder.hpp"

namespace preflop {

namespace {

constexpr double kMostTokens = 9007199254740992.0;  // 2^53

Status read_tokens(RunReader& in, const Model& model) {
  const std::string* text = in.given("tokens");
  if (text == nullptr) return Nothing{};
  if (*text == "chinchilla") {
    const Sourced& each = in.data().value("tokens_per_parameter");
    const double n = summarise(model).params_active.real();
    in.recipe().tokens = std::round(each.value * n);
    in.assume("tokens", text::grouped(static_cast<long long>(*in.recipe().tokens)),
              text::fixed(each.value, 0) + " a parameter, an aid and no plan: " + each.source);
    return Nothing{};
  }
  const auto tokens = parse_tokens(*text, "--tokens");
  if (!tokens) return tokens.error();
  if (tokens->get() == 0) return Error{"--tokens", "a run of no tokens", "at least one step"};
  in.recipe().tokens = tokens->real();
  return Nothing{};
}

// Mean tokens of a sample; a whole sequence where nothing is said.
Result<double> mean_length(RunReader& in) {
  const auto seq = static_cast<double>(in.recipe().seq);
  const std::string* text = in.given("mean_length");
  if (text == nullptr) {
    in.assume("mean_length", text::fixed(seq, 0), "every sample fills the sequence");
    return seq;
  }
  const auto mean = parse_real(*text, "--mean-length");
  if (!mean) return mean.error();
  if (*mean <= 0) return Error{"--mean-length", "samples without tokens", "more than 0"};
  if (*mean > seq)
    return Error{"--mean-length", text::quoted(*text) + " is longer than the sequence of " + text::fixed(seq, 0),
                 "at most that: longer samples are cut"};
  return *mean;
}

// Samples packed into full sequences: attention kernels of packed data keep each sample to itself.
Status read_packing(RunReader& in) {
  const auto packing = in.on_off("packing");
  if (!packing) return packing.error();
  if (!packing->value_or(false)) return Nothing{};
  const auto mean = mean_length(in);
  if (!mean) return mean.error();
  if (*mean < static_cast<double>(in.recipe().seq)) in.recipe().sample_tokens = *mean;
  return Nothing{};
}

Status read_samples(RunReader& in) {
  const std::string* text = in.given("samples");
  if (text == nullptr) {
    for (const char* key : {"epochs", "max_length"}) {
      if (in.given(key) != nullptr) return Error{flag_of(key), "it needs --samples", "--samples N, or leave it out"};
    }
    const bool packed = in.recipe().sample_tokens > 0;
    for (const char* key : {"mean_length", "packing"}) {
      if (in.given(key) != nullptr && !packed)
        return Error{flag_of(key), "it says nothing alone",
                     "--samples N, or both --packing on and --mean-length N of less than the sequence"};
    }
    return Nothing{};
  }
  if (in.given("tokens") != nullptr) return Error{"--samples", "--tokens is given, too", "one of the two"};
  const auto samples = parse_count(*text, "--samples");
  if (!samples) return samples.error();
  if (samples->get() == 0) return Error{"--samples", "a run of no samples", "1 or more"};
  double epochs = 1;
  if (const std::string* times = in.given("epochs")) {
    const auto given = parse_real(*times, "--epochs");
    if (!given) return given.error();
    if (*given <= 0) return Error{"--epochs", "a run of no epochs", "more than 0"};
    epochs = *given;
  } else {
    in.assume("epochs", "1", "");
  }
  const auto mean = mean_length(in);
  if (!mean) return mean.error();
  const auto packing = in.on_off("packing");
  if (!packing) return packing.error();
  if (!*packing) in.assume("packing", "off", "a sample a sequence, padded to the sequence length");
  const double seen = std::ceil(samples->real() * epochs);
  if (!(seen * *mean <= kMostTokens)) return Error{"--epochs", "more than 2^53 tokens", "a shorter run"};
  in.recipe().tokens = std::round(seen * *mean);
  if (!packing->value_or(false)) in.recipe().run.sequences = seen;
  return Nothing{};
}

}  // namespace

Status read_length(RunReader& in, const Model& model) {
  if (Status s = read_tokens(in, model); !s) return s;
  if (Status s = read_packing(in); !s) return s;
  return read_samples(in);
}

double run_sequences(const Recipe& r) {
  return r.run.sequences ? *r.run.sequences : *r.tokens / static_cast<double>(r.seq);
}

}  // namespace preflop
