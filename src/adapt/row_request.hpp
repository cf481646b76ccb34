// A measured run -> the request that pose() takes, what it measured, and what had to be assumed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/adapt/request.hpp"
#include "src/adapt/row_model.hpp"
#include "src/adapt/rows.hpp"

namespace preflop {

// A quantity that the row measured. Time is still in the source's own terms: see `from`.
struct Reading {
  enum class From : std::uint8_t {
    seconds,
    tokens_per_second_per_gpu,
    samples_per_second,
    tflops_per_gpu,
    mfu,
    bytes,
    verdict,
    nothing
  };
  std::string metric;  // time.step_seconds, memory.allocated|reserved|device, fit.verdict
  From from = From::nothing;
  double value = 0;        // in SI; verdict: 1 ran, 0 out of memory; nothing: none
  std::string convention;  // of TFLOP/s and MFU
  double peak_flops = 0;   // behind an MFU; 0: the GPU's dense peak
};

struct RowRequest {
  Request request;
  std::string model;  // for people
  std::string stack;  // name as the row has it, built or not; empty: not stated
  bool moe = false;
  std::vector<std::string> assumed;       // "key=value": not stated by the row, or by no words that are known
  std::vector<std::string> not_modelled;  // "key=value": stated, but no part of a recipe yet
  std::vector<Reading> readings;          // never empty
  bool states_enough = false;             // model or shape, GPU, count, sequence, micro-batch, kind of training
  bool measures = false;                  // has a result
  Skip skip;
  double gpus = 0, step_tokens = 0, seq = 0;  // of a step; 0: not stated
  std::optional<double> capacity_bytes;       // of a card whose memory was capped
  bool first_node = false;                    // device memory was read on the first node only
  std::optional<double> scaleout;             // bytes/s per direction and GPU
  std::optional<std::int64_t> slice;          // TPUs that one torus joins
  std::optional<double> sustained;            // FLOP/s of large bf16 products, measured on that machine
};
RowRequest row_request(const Row& row, const SourceRules& rules, const RowWords& words, const Catalogues& catalogues);

// What a row that pose() refuses is skipped as.
Skip skip_of(const Error& error, const Request& request);

}  // namespace preflop
