#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/view/json.hpp"
#include "src/view/mfu.hpp"

namespace preflop {

namespace {

constexpr std::size_t kLeft = 11;  // "Predicted  "

// Lines of at most `width` columns; a percent sign stays with its number.
std::vector<std::string> lines_of(std::string body, std::size_t width) {
  constexpr char kGlue = '\x1f';
  for (std::size_t at = body.find(" %"); at != std::string::npos; at = body.find(" %", at)) body[at] = kGlue;
  std::vector<std::string> out = text::wrapped(body, width);
  for (std::string& line : out) std::replace(line.begin(), line.end(), kGlue, ' ');
  return out;
}

std::string labelled(const std::string& label, const std::string& body) {
  std::string out;
  for (const std::string& line : lines_of(body, text::kColumns - kLeft)) {
    const std::string left = out.empty() ? label : "";
    out += left + std::string(kLeft - left.size(), ' ') + line + "\n";
  }
  return out;
}

std::string bullet(const std::string& body) {
  std::string out;
  for (const std::string& line : lines_of(body, text::kColumns - 4))
    out += (out.empty() ? "  - " : "    ") + line + "\n";
  return out;
}

std::string rate(double tokens) {
  return tokens < 10     ? text::fixed(tokens, 2)
         : tokens < 1e15 ? text::grouped(std::llround(tokens))
                         : text::scientific(tokens);
}
std::string tflops(double f, int decimals) { return text::fixed(f / 1e12, decimals); }
std::string gflop(double f) { return f < 1e12 ? text::fixed(f / 1e9, f < 1e9 ? 4 : 2) : text::fixed(f / 1e9, 1); }

std::string first_line(const Utilisation& u, const Estimate& e) {
  const std::string gpus = text::grouped(e.cluster.gpus) + " x " + e.cluster.gpu.id;
  const std::string line = e.model.name + " on " + gpus + ": MFU " + text::percent(u.mfu) + " (" +
                           u.conventions.front().convention->name + ").";
  std::string out;
  for (const std::string& part : text::wrapped(line, text::kColumns)) out += part + "\n";
  return out;
}

std::string measured_text(const Utilisation& u, const Estimate& e) {
  std::string body = rate(u.tokens_per_second) + " tokens/s, " + rate(u.tokens_per_second_per_gpu) + " per GPU, " +
                     text::seconds(u.step_seconds) + " a step of " + text::grouped(e.recipe.global_batch) + " x " +
                     text::grouped(e.recipe.seq) + " tokens";
  if (u.measured.convention != nullptr)
    body += " (from " + tflops(u.measured.value, 1) + " TFLOP/s under " + u.measured.convention->name + ")";
  return labelled("Measured", body);
}

std::string peak_text(const Utilisation& u, const Estimate& e) {
  const Peak& p = u.peak;
  const bool own = p.field == "given";
  return labelled("Peak",
                  tflops(p.flops, p.flops < 99.95e12 ? 1 : 0) + " TFLOP/s " +
                      (own ? "as given with --peak"
                           : "dense, " + e.recipe.precision + ", one " + e.cluster.gpu.id +
                                 (p.rung == "exact" ? "" : ", assumed (" + p.rung + ")") + " (" + p.source + ")"));
}

// What the given peak is stands beside it, not among the causes.
bool is_about_peak(const Cause& cause) { return cause.kind != "over_peak" && cause.kind.ends_with("_peak"); }

std::string peak_notes(const Utilisation& u) {
  std::string out;
  for (const Cause& cause : u.causes) {
    if (is_about_peak(cause)) out += labelled("", cause.text);
  }
  return out;
}

std::string table_text(const Utilisation& u) {
  const bool two = u.conventions.front().mfu_of_given.has_value();
  text::Table table(text::kColumns, 2);
  table.column("convention").column("GFLOP/token", text::Table::Align::right);
  table.column("TFLOP/s/GPU", text::Table::Align::right).column("MFU", text::Table::Align::right);
  if (two) table.column("of --peak", text::Table::Align::right);
  for (const ConventionUse& c : u.conventions) {
    std::vector<std::string> row = {c.convention->name, gflop(c.flops_per_token), tflops(c.flops_per_gpu, 1),
                                    text::percent(c.mfu)};
    if (two) row.push_back(text::percent(*c.mfu_of_given));
    table.row(std::move(row));
  }
  return table.str();
}

std::string counted_text(const Utilisation& u) {
  std::string out = "\nWhat each counts\n";
  for (const ConventionUse& c : u.conventions)
    out += bullet(std::string(c.convention->name) + ": " + c.convention->says + " (" + c.convention->source + ")");
  return out;
}

std::string predicted_text(const Utilisation& u) {
  if (!u.predicted_mfu) return labelled("Predicted", "nothing: a rate of this GPU is not known");
  const double points = *u.unexplained * 100;
  return labelled("Predicted", text::percent(*u.predicted_mfu) + ", " + rate(*u.predicted_tokens_per_second_per_gpu) +
                                   " tokens/s per GPU (from kernels, links and schedule); " +
                                   text::fixed(std::fabs(points), 1) + " points " +
                                   (points >= 0 ? "unexplained" : "above it"));
}

std::string assumed_here_text(const Estimate& e, bool everything) {
  std::vector<std::string> all = e.recipe.assumed;
  all.insert(all.end(), e.cluster.assumed.begin(), e.cluster.assumed.end());
  if (all.empty()) return "";
  const std::size_t shown = everything || all.size() <= 5 ? all.size() : 4;
  std::string out = "\nAssumed (give the flag to change it)\n";
  for (std::size_t i = 0; i < shown; ++i) out += bullet(all[i]);
  if (shown < all.size()) out += "    and " + std::to_string(all.size() - shown) + " more: -v\n";
  return out;
}

}  // namespace

std::string mfu_text(const Utilisation& u, const Estimate& e, const TextOptions& options) {
  std::string out = first_line(u, e);
  if (options.brief) return out;
  out += "\n" + measured_text(u, e) + peak_text(u, e) + peak_notes(u) + predicted_text(u) + "\n" + table_text(u);
  if (options.everything) out += counted_text(u);
  std::string causes;
  for (const Cause& cause : u.causes) {
    if (!is_about_peak(cause)) causes += bullet(cause.text);
  }
  if (!causes.empty()) out += "\nLikely causes\n" + causes;
  return out + assumed_here_text(e, options.everything);
}

}  // namespace preflop
