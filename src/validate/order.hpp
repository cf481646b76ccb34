// Does the prediction put layouts of one job in the right order? The job is a model on a number of GPUs with one
// sequence, batch, precision and stack; its layouts are what differs.
#pragma once

#include <string>
#include <vector>

#include "src/validate/validate.hpp"

namespace preflop {

struct JobOrder {
  std::string source, job;
  std::size_t layouts = 0;  // that differ
  std::size_t pairs = 0;    // of rows of two layouts whose measured times are more than 3 % apart
  double right = 0;         // of these, predicted in their order; a tie counts half
  double regret = 0;        // the time of the layout predicted fastest, over that of the fastest, less one
};

// Rows of which their tables say that the time has another cause than the layout: an outlier, where the job was placed.
bool marked(const Entry& entry);

// Jobs of at least so many layouts whose step times were measured and predicted, by source and job.
std::vector<JobOrder> job_orders(const std::vector<Entry>& entries, std::size_t least = 5);

// Of all pairs of the jobs the share that is right; 0 where there are none.
double concordance(const std::vector<JobOrder>& jobs);

// The largest regret of them; 0 where there are none.
double largest_regret(const std::vector<JobOrder>& jobs);

}  // namespace preflop
