// preflop validate: predicted against measured.
#include "src/validate/validate.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/validate/layouts.hpp"
#include "src/validate/whole_runs.hpp"
#include "src/view/validate.hpp"

namespace preflop::cli {

namespace {

constexpr std::size_t kMaxRowsBytes = std::size_t{1} << 30;
constexpr std::size_t kRowsPerTick = 64;
constexpr std::size_t kRowsPerThread = 2000;
constexpr std::string_view kFolder = "measured/";

// A line on stderr that is drawn over itself; nothing where stderr is no terminal. Rows may be counted from
// any thread; draw() belongs to one.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), on_(isatty(STDERR_FILENO) != 0 && total > 0) {}
  ~Progress() {
    if (on_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void count() { ++done_; }
  void draw() const {
    const std::size_t done = done_;
    if (!on_ || done % kRowsPerTick != 0) return;
    constexpr std::size_t kCells = 40;
    const std::size_t full = done * kCells / total_;
    std::fprintf(stderr, "\r[%s%s] %zu of %zu rows", std::string(full, '#').c_str(),
                 std::string(kCells - full, ' ').c_str(), done, total_);
  }

 private:
  std::size_t total_;
  std::atomic<std::size_t> done_ = 0;
  bool on_;
};

// The tables to validate: the user's file, or the project's own.
Result<std::vector<RowTable>> tables(const Args& args, const RowWords& words) {
  std::vector<RowTable> out;
  if (args.has("rows")) {
    const std::string path = args.value("rows");
    const auto text = read_text(path, "--rows", kMaxRowsBytes);
    if (!text) return text.error();
    auto table = RowTable::parse(*text, path == "-" ? "standard input" : path, words);
    if (!table) return table.error();
    out.push_back(std::move(table).value());
    return out;
  }
  for (std::string_view path : embedded_paths()) {
    if (!path.starts_with(kFolder)) continue;
    auto table = RowTable::parse(embedded(path), path, words);
    if (!table) return table.error();
    out.push_back(std::move(table).value());
  }
  return out;
}

Status keep_source(const std::string& wanted, std::vector<RowTable>& all) {
  std::vector<std::string> stems;
  for (const RowTable& table : all) stems.push_back(table.stem());
  if (std::find(stems.begin(), stems.end(), wanted) == stems.end())
    return Error{"--source", "unknown source " + text::quoted(wanted), text::list(stems)};
  std::erase_if(all, [&](const RowTable& table) { return table.stem() != wanted; });
  return Nothing{};
}

Result<int> explain_row(const std::string& id, const std::vector<RowTable>& all, Validator& validator) {
  std::vector<std::string> ids;
  for (const RowTable& table : all) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      const Row row = table.row(i);
      if (row.id != id) {
        ids.push_back(row.id);
        continue;
      }
      if (Status s = write_text(explain_row_text(row, validator.explain(row, table.stem())), ""); !s) return s.error();
      return kDone;
    }
  }
  Error error = text::unknown_name("--explain", "row", id, ids);
  if (error.valid.empty() && !ids.empty())
    error.valid = "the id of a row, such as " + ids.front() + "; `preflop validate --json` has them all";
  return error;
}

Status write_docs(const Report& report, const Catalogues& catalogues, const std::string& folder) {
  if (!is_folder(folder))
    return Error{"--write-docs", text::quoted(folder) + " is not a folder", "a folder, such as docs"};
  if (Status s = write_text(accuracy_page(report), folder + "/accuracy.md"); !s) return s;
  const Result<std::string> cases = user_case_page(report);
  if (!cases) return cases.error();
  if (Status s = write_text(*cases, folder + "/user-cases.md"); !s) return s;
  const auto runs = whole_runs(catalogues);
  if (!runs) return runs.error();
  if (Status s = write_text(whole_runs_page(*runs, catalogues.run), folder + "/whole-runs.md"); !s) return s;
  for (const auto& [metric, file] : {std::pair{"time.step_seconds", "time"}, std::pair{"memory.allocated", "allocated"},
                                     std::pair{"memory.reserved", "reserved"}, std::pair{"memory.device", "device"}}) {
    const std::string svg = accuracy_svg(report, metric);
    if (svg.empty()) continue;
    if (Status s = write_text(svg, folder + "/accuracy-" + file + ".svg"); !s) return s;
  }
  return Nothing{};
}

struct Slice {
  const RowTable* table;
  std::size_t begin, end;
};

void validate_slice(const Slice& slice, Validator& validator, Progress& progress, bool draws, Report& report) {
  for (std::size_t i = slice.begin; i < slice.end; ++i) {
    const Row row = slice.table->row(i);
    report.mapping.add(validator.add(row, slice.table->stem(), report.entries), slice.table->stem());
    progress.count();
    if (draws) progress.draw();
  }
}

// Small tables go to one thread; large ones are cut into a slice for each. Slices are joined in the order of
// the rows: the result does not depend on the number of threads.
Report validate_all(const std::vector<RowTable>& all, Validator& validator) {
  std::size_t total = 0;
  for (const RowTable& table : all) total += table.size();
  Progress progress(total);
  Report report;
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  for (const RowTable& table : all) {
    const std::size_t slices = std::min(threads, table.size() / kRowsPerThread + 1);
    std::vector<Report> parts(slices);
    std::vector<Validator> validators(slices - 1, validator);
    std::vector<std::thread> workers;
    for (std::size_t k = 1; k < slices; ++k) {
      workers.emplace_back([&, k] {
        validate_slice({&table, table.size() * k / slices, table.size() * (k + 1) / slices}, validators[k - 1],
                       progress, false, parts[k]);
      });
    }
    validate_slice({&table, 0, table.size() / slices}, validator, progress, true, parts[0]);
    for (std::thread& worker : workers) worker.join();
    for (Report& part : parts) report.append(std::move(part));
  }
  return report;
}

// Sources whose layouts experts chose; the others vary them on purpose.
constexpr std::array kExperts = {"nvidia-megatron-bridge", "nvidia-dgxc-benchmarking", "narayanan-2021", "papers-misc"};

// Rows are searched by as many threads as there are cores, and stand in their order whatever their number.
std::vector<PublishedLayout> layouts_of(const std::vector<RowTable>& all, const Validator& validator,
                                        const Catalogues& catalogues) {
  std::vector<std::pair<const RowTable*, std::size_t>> rows;
  for (const RowTable& table : all) {
    for (std::size_t i = 0; i < table.size(); ++i) rows.emplace_back(&table, i);
  }
  Progress progress(rows.size());
  std::vector<std::optional<PublishedLayout>> found(rows.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&](bool draws) {
    Validator own = validator;
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      found[i] = published_layout(rows[i].first->row(rows[i].second), rows[i].first->stem(), own, catalogues);
      progress.count();
      if (draws) progress.draw();
    }
  };
  std::vector<std::thread> workers;
  for (unsigned k = 1; k < std::max(1U, std::thread::hardware_concurrency()); ++k) workers.emplace_back(work, false);
  work(true);
  for (std::thread& worker : workers) worker.join();
  std::vector<PublishedLayout> out;
  for (auto& one : found) {
    if (one) out.push_back(std::move(*one));
  }
  compare_measured(out);
  return out;
}

}  // namespace

std::vector<Flag> validate_flags() {
  std::vector<Flag> out = {
      {"rows", "FILE.csv", "your own measured runs (docs/rows-format.md); - for stdin", "rows"},
      {"source", "NAME", "one source of the project's, such as llm-foundry", "rows"},
      {"worst", "N", "how many of the rows farthest off are listed (10)", "rows"},
      {"explain", "ID", "one row: its recipe, and the prediction beside the measurement", "rows"},
      {"layouts", "", "the layouts that the sources published, against the best that plan finds: Markdown", "rows"},
      {"write-docs", "FOLDER", "write accuracy.md, its pictures, user-cases.md and whole-runs.md", "output"}};
  for (Flag& flag : output_flags()) out.push_back(std::move(flag));
  return out;
}

Result<int> run_validate(const Args& args) {
  const auto catalogues = catalogues_of(args);
  if (!catalogues) return catalogues.error();
  const auto words = RowWords::load();
  if (!words) return words.error();
  auto all = tables(args, *words);
  if (!all) return all.error();
  if (args.has("source")) {
    if (Status s = keep_source(args.value("source"), *all); !s) return s.error();
  }
  for (const RowTable& table : *all) {
    for (const std::string& warning : table.warnings()) complain(warning);
  }
  ValidateTextOptions options;
  options.everything = args.has("verbose");
  options.brief = args.has("quiet");
  if (args.has("worst")) {
    const auto n = parse_count(args.value("worst"), "--worst");
    if (!n) return n.error();
    options.worst = static_cast<std::size_t>(n->get());
  }
  auto validator = Validator::make(*catalogues, *words);
  if (!validator) return validator.error();
  if (args.has("explain")) return explain_row(args.value("explain"), *all, *validator);
  if (args.has("layouts")) {
    if (!args.has("source")) {
      std::erase_if(*all, [](const RowTable& t) {
        return std::find(kExperts.begin(), kExperts.end(), t.stem()) == kExperts.end();
      });
    }
    if (Status s = write_text(layouts_page(layouts_of(*all, *validator, *catalogues)), ""); !s) return s.error();
    return kDone;
  }
  const Report report = validate_all(*all, *validator);
  if (args.has("write-docs")) {
    if (Status s = write_docs(report, *catalogues, args.value("write-docs")); !s) return s.error();
    return kDone;
  }
  if (Status s = emit(
          args, [&] { return validate_json_value(report); }, [&] { return validate_text(report, options); });
      !s)
    return s.error();
  return kDone;
}

}  // namespace preflop::cli
