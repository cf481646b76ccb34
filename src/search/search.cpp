#include "src/search/search.hpp"

#include <algorithm>
#include <limits>

#include "src/search/cell.hpp"
#include "src/search/seed.hpp"

namespace preflop {

std::pair<double, double> rank(Objective objective, const Priced& p, std::int64_t micro_batch) {
  if (objective == Objective::memory) return {p.needed, p.seconds};
  if (objective == Objective::micro_batch) return {-static_cast<double>(micro_batch), p.seconds};
  return p.seconds > 0 ? std::pair(p.seconds, p.needed) : std::pair(p.needed, 0.0);
}

bool usable(const Priced& p, const Limits& limits) {
  if (p.verdict == Verdict::no || (p.verdict == Verdict::tight && !limits.allow_tight)) return false;
  if (limits.device_bytes > 0 && p.device > limits.device_bytes) return false;
  return !(limits.seconds > 0 && p.seconds > limits.seconds);
}

namespace {

bool better(const Found& a, const Found& b) {
  return a.rank != b.rank ? a.rank < b.rank : a.priced.ordinal < b.priced.ordinal;
}

bool faster(const Found& a, const Found& b) {
  const auto key = [](const Found& f) { return std::pair(f.priced.seconds, f.priced.ordinal); };
  return key(a) < key(b);
}

void keep(std::vector<Found>& best, const Found& found, std::size_t top) {
  if (best.size() == top && !better(found, best.back())) return;
  best.insert(std::upper_bound(best.begin(), best.end(), found, better), found);
  if (best.size() > top) best.pop_back();
}

void keep_nearest(std::optional<Found>& nearest, const Found& found) {
  const auto less = [](const Priced& a, const Priced& b) {
    return a.needed != b.needed ? a.needed < b.needed : a.ordinal < b.ordinal;
  };
  if (!nearest || less(found.priced, nearest->priced)) nearest = found;
}

}  // namespace

// Takes what the cells find.
struct Search::Work : Cells::Sink {
  Work(const Question& question, const Space& space, Objective o, const Limits& l, std::size_t t)
      : question(question),
        space(space),
        tables(question, space),
        cells(question, space, tables, *this),
        objective(o),
        limits(l),
        top(t) {}

  void priced(const Priced& p, std::int64_t micro_batch) override {
    ++out.priced;
    const Found found{p, rank(objective, p, micro_batch)};
    if (p.verdict == Verdict::no) {
      keep_nearest(out.nearest, found);
      cells.reject(Quick::memory, p.ordinal, 1);
    } else if (limits.device_bytes > 0 && p.device > limits.device_bytes) {
      keep_nearest(out.nearest, found);
      cells.reject(Quick::device, p.ordinal, 1);
    } else if (p.verdict == Verdict::tight && !limits.allow_tight) {
      if (!out.tight || better(found, *out.tight)) out.tight = found;
      cells.reject(Quick::tight, p.ordinal, 1);
    } else if (limits.seconds > 0 && p.seconds > limits.seconds) {
      if (!out.slow || faster(found, *out.slow)) out.slow = found;
      cells.reject(Quick::slow, p.ordinal, 1);
    } else {
      keep(out.best, found, top);
    }
  }
  void short_of_memory(const Priced& p) override { keep_nearest(out.nearest, {p, {p.needed, p.seconds}}); }
  double nearest_needed() const override { return out.nearest ? out.nearest->priced.needed : -1; }
  double slowest_of_use() const override { return bound; }

  double bound = std::numeric_limits<double>::infinity();
  bool seeded = false;  // what the bound needs has been looked for
  const Question& question;
  const Space& space;
  Tables tables;
  Cells cells;
  Objective objective;
  Limits limits;
  std::size_t top;
  std::uint64_t next = 0;
  std::uint32_t part = 0, parts = 1;
  SearchResult out;
};

Search::Search(const Question& question, const Space& space, Objective objective, const Limits& limits, std::size_t top,
               std::uint32_t part, std::uint32_t parts, Bound bound)
    : work_(std::make_unique<Work>(question, space, objective, limits, top)) {
  work_->part = part;
  work_->parts = parts;
  work_->seeded = bound == Bound::none;
}
Search::~Search() = default;

bool Search::advance(std::uint64_t ordinals) {
  Work& w = *work_;
  if (!w.seeded) {
    w.bound = seconds_reached(w.question, w.space, w.objective, w.limits, w.top);
    w.seeded = true;
  }
  for (std::uint64_t looked = 0; w.next < w.cells.count() && looked < ordinals; ++w.next) {
    if (w.cells.group(w.next) % w.parts != w.part) continue;
    w.cells.look(w.next);
    looked += w.cells.inner();
  }
  return w.next < w.cells.count();
}

SearchResult Search::result() const {
  SearchResult out = work_->out;
  work_->cells.counts(out);
  out.rows = work_->tables.rows_filled();
  return out;
}

bool of_layout(const Error& error) {
  constexpr std::array<std::string_view, 12> kSizes = {"--on",   "--tp",   "--pp",           "--vpp",
                                                       "--cp",   "--ep",   "--etp",          "--dp",
                                                       "--zero", "--hsdp", "--global-batch", "--micro-batch"};
  const std::string_view flag = error.where;
  return !flag.starts_with("--") || std::find(kSizes.begin(), kSizes.end(), flag) != kSizes.end();
}

bool is_refusal(const Reason& reason) { return !reason.example.where.empty(); }

namespace {

// Where no layout is legal: sizes that the GPUs are no multiple of come last, for those that they are a multiple of are
// illegal for another reason.
int place(const Reason& reason) { return !of_layout(reason.example) ? 0 : reason.example.where == "--on" ? 2 : 1; }

}  // namespace

SearchResult merge(std::vector<SearchResult> parts, std::size_t top) {
  SearchResult out;
  for (SearchResult& part : parts) {
    out.space += part.space;
    out.pruned += part.pruned;
    out.checked += part.checked;
    out.priced += part.priced;
    out.rows += part.rows;
    for (const Found& found : part.best) keep(out.best, found, top);
    if (part.nearest) keep_nearest(out.nearest, *part.nearest);
    if (part.tight && (!out.tight || better(*part.tight, *out.tight))) out.tight = part.tight;
    if (part.slow && (!out.slow || faster(*part.slow, *out.slow))) out.slow = part.slow;
    for (Reason& reason : part.rejected) {
      const auto same = std::find_if(out.rejected.begin(), out.rejected.end(),
                                     [&](const Reason& r) { return r.text == reason.text; });
      if (same == out.rejected.end()) {
        out.rejected.push_back(std::move(reason));
        continue;
      }
      same->count += reason.count;
      if (reason.first < same->first) {
        same->first = reason.first;
        same->example = std::move(reason.example);
      }
    }
  }
  std::sort(out.rejected.begin(), out.rejected.end(),
            [](const Reason& a, const Reason& b) { return a.count != b.count ? a.count > b.count : a.text < b.text; });
  if (out.best.empty() && !out.nearest && !out.tight && !out.slow)
    std::stable_sort(out.rejected.begin(), out.rejected.end(),
                     [](const Reason& a, const Reason& b) { return place(a) < place(b); });
  std::stable_partition(out.rejected.begin(), out.rejected.end(), is_refusal);
  return out;
}

Result<Priced> price_ordinal(const Question& question, const Space& space, Tables& tables, std::uint64_t ordinal) {
  struct One : Cells::Sink {
    std::optional<Priced> found;
    std::uint64_t wanted = 0;
    void priced(const Priced& p, std::int64_t) override {
      if (p.ordinal == wanted) found = p;
    }
    void short_of_memory(const Priced& p) override {
      if (p.ordinal == wanted) found = p;
    }
    double nearest_needed() const override { return -1; }
  } sink;
  sink.wanted = ordinal;
  // The space of this one ordinal, so that only it is looked at; tables index by the whole space.
  Cells cells(question, space, tables, sink);
  cells.only(space.position(ordinal));
  cells.look(cells.cell_of(space.position(ordinal)));
  if (sink.found) return *sink.found;
  SearchResult counts;
  cells.counts(counts);
  return Error{"plan", counts.rejected.empty() ? "not in the space" : counts.rejected.front().example.text(), ""};
}

}  // namespace preflop
