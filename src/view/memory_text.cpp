#include "src/view/memory_text.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "src/base/text.hpp"

namespace preflop {

namespace {

using PeakStage = StageMemory<double>;

constexpr std::size_t kColumns = 6;

bool equal(const PeakStage& a, const PeakStage& b) {
  for (int t = 0; t < kTerms; ++t) {
    if (!(a.terms[t] == b.terms[t])) return false;
  }
  return a.layers == b.layers && a.moment == b.moment && a.device == b.device;
}

std::string gib(double bytes) { return bytes == 0 ? "-" : text::fixed(bytes / 1073741824.0, 2); }

// The groups to show, as indices: all, or the fullest, the first, the last and the next ones from the front.
std::vector<std::size_t> chosen_groups(const MemoryEstimate<double>& memory, const std::vector<StageGroup>& groups) {
  std::set<std::size_t> out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].first <= memory.peak_stage && memory.peak_stage <= groups[i].last) out.insert(i);
  }
  out.insert(0);
  out.insert(groups.size() - 1);
  for (std::size_t i = 1; i < groups.size() && out.size() < std::min(kColumns, groups.size()); ++i) out.insert(i);
  return {out.begin(), out.end()};
}

void add_row(text::Table& table, const MemoryEstimate<double>& memory, const std::vector<StageGroup>& groups,
             const std::string& label, const std::function<std::string(const PeakStage&)>& cell) {
  std::vector<std::string> cells = {label};
  for (const StageGroup& g : groups) cells.push_back(cell(memory.stages[g.first]));
  table.row(cells);
}

std::string one_table(const MemoryEstimate<double>& memory, const std::vector<StageGroup>& groups) {
  text::Table table(80, 2);
  const bool pipeline = memory.stages.size() > 1;
  table.column(pipeline ? "stage" : "GiB per GPU");
  for (const StageGroup& g : groups) table.column(pipeline ? stage_range(memory, g) : "", text::Table::Align::right);
  if (pipeline)
    add_row(table, memory, groups, "layers in it", [](const PeakStage& s) { return std::to_string(s.layers); });
  static constexpr const char* kLabels[kTerms] = {"weights",     "gradients",       "optimizer states",
                                                  "activations", "logits and loss", "buffers of the stack",
                                                  "transients"};
  for (int t = 0; t < kTerms; ++t)
    add_row(table, memory, groups, kLabels[t], [t](const PeakStage& s) { return gib(s.terms[t].number()); });
  table.rule();
  const double band = memory.allocated_band;
  const auto most = [band](const PeakStage& s) { return s.allocated.number() + s.allocated.number() * band; };
  add_row(table, memory, groups, "allocated by tensors", [](const PeakStage& s) { return gib(s.allocated.number()); });
  if (band > 0)
    add_row(table, memory, groups, "at most, +" + text::fixed(band * 100, 1) + " %",
            [&](const PeakStage& s) { return gib(most(s)); });
  add_row(table, memory, groups, "outside (CUDA, NCCL)", [](const PeakStage& s) { return gib(s.context.number()); });
  add_row(table, memory, groups, "needed: both of these",
          [&](const PeakStage& s) { return gib(most(s) + s.context.number()); });
  if (memory.capacity)
    add_row(table, memory, groups, "of a capacity of",
            [&](const PeakStage&) { return gib(memory.capacity->number()); });
  table.rule();
  add_row(table, memory, groups, "reserved by allocator", [](const PeakStage& s) { return gib(s.reserved.number()); });
  add_row(table, memory, groups, "and outside: nvidia-smi", [](const PeakStage& s) { return gib(s.device.number()); });
  if (memory.tight_band > 0)
    add_row(table, memory, groups, "at most, reserved +" + text::fixed(memory.tight_band * 100, 1) + " %",
            [&](const PeakStage& s) { return gib(s.device.number() + s.reserved.number() * memory.tight_band); });
  return table.str();
}

}  // namespace

std::vector<StageGroup> stage_groups(const MemoryEstimate<double>& memory) {
  std::vector<StageGroup> out;
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    if (!out.empty() && equal(memory.stages[out.back().first], memory.stages[i]))
      out.back().last = i;
    else
      out.push_back({i, i});
  }
  return out;
}

std::string stage_range(const MemoryEstimate<double>& memory, const StageGroup& g) {
  const std::string first = std::to_string(memory.stages[g.first].stage);
  return g.first == g.last ? first : first + "-" + std::to_string(memory.stages[g.last].stage);
}

std::string moment_words(Moment moment) {
  switch (moment) {
    case Moment::init:
      return "the start of training";
    case Moment::loss:
      return "the loss";
    case Moment::last_layer_backward:
      return "the last layer's backward pass";
    case Moment::first_layer_backward:
      return "the first layer's backward pass";
    case Moment::end_of_backward:
      return "the end of the backward pass";
    case Moment::reduction:
      return "the reduction of gradients";
    case Moment::optimizer_step:
      return "the optimizer step";
  }
  return "";
}

std::string memory_table(const MemoryEstimate<double>& memory, bool everything) {
  const std::vector<StageGroup> groups = stage_groups(memory);
  std::string out;
  if (!everything || groups.size() <= kColumns) {
    const std::vector<std::size_t> chosen = chosen_groups(memory, groups);
    std::vector<StageGroup> shown;
    for (std::size_t i : chosen) shown.push_back(groups[i]);
    out = one_table(memory, shown);
    if (shown.size() < groups.size()) out += "  The other stages lie between these (-v shows every one).\n";
    return out;
  }
  for (std::size_t i = 0; i < groups.size(); i += kColumns) {
    const std::size_t end = std::min(i + kColumns, groups.size());
    out += (i > 0 ? "\n" : "") + one_table(memory, {groups.begin() + static_cast<std::ptrdiff_t>(i),
                                                    groups.begin() + static_cast<std::ptrdiff_t>(end)});
  }
  return out;
}

}  // namespace preflop
