// The search against what it stands for: `estimate` and brute force.
#include "src/search/search.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "src/adapt/question.hpp"
#include "src/search/cell.hpp"
#include "tests/support/draw.hpp"

namespace preflop {
namespace {

using namespace test;

Cluster cluster_of(i64 gpus, double capacity) {
  const static MachineCatalogue machines = std::move(MachineCatalogue::load()).value();
  Cluster c = *machines.cluster((gpus < 8 ? std::to_string(gpus) : std::to_string(gpus / 8 * 8)) + "xh100-sxm");
  c.gpus = gpus;
  c.gpus_per_node = gpus < 8 ? gpus : 8;
  for (auto* data : {&c.gpu.data, &c.platform.data}) {
    const auto at = data->find("capacity_bytes");
    if (at != data->end()) at->second.value = capacity;
  }
  return c;
}

struct Drawn {
  std::shared_ptr<Model> model;
  Question question;
  Space space;
};

// The newest of a stack's generations half of the time, else any: they differ in what they can run.
const Stack& any_generation(const std::string& stack_name) {
  std::vector<const Stack*> all;
  for (const Stack& s : stacks().all()) {
    if (s.name == stack_name) all.push_back(&s);
  }
  return coin() ? *all.back() : *one_of(all);
}

// A small architecture with or without experts, any stack, any recipe, a space of a few values per axis.
bool plays(const Stack& s) {
  return std::any_of(s.schedules.begin(), s.schedules.end(), [](const std::string& n) { return n.starts_with("zb-"); });
}

// `played`: with a schedule that is played, not composed, where the stack has one.
Drawn draw(const Stack& s, bool with_experts, bool played) {
  Drawn out;
  RC_LOG() << s.full_name() << "\n";
  Architecture a = draw_architecture(2);
  if (coin()) a.layers.push_back({draw_hybrid_kind(s), pick(1, 3)});
  const bool experts = with_experts && s.experts && coin();
  if (experts) {
    LayerRun run = a.layers.back();
    run.kind.placement = NormPlacement::pre;
    ExpertSpec e;
    e.count = one_of<i64>({4, 8, 16});
    e.top_k = one_of<i64>({1, 2, 4});
    e.width = 8 * pick(1, 40);
    e.shared_width = coin() ? Count(8 * pick(1, 40)) : Count(0);
    run.kind.experts = e;
    a.layers.push_back(run);
    if (coin()) a.mtp_layers = pick(1, 2);
    a.mtp_shared = coin();
  }
  out.model = std::make_shared<Model>(build_model(a));
  Recipe r = draw_recipe(a, s);
  r.layout = Layout{};
  r.layout.schedule = s.schedules.front();
  r.micro_batch = 1;
  r.global_batch = one_of<i64>({8, 16, 24});
  r.mtp = a.mtp_layers;
  r.optimizer_implementation = one_of(s.optimizer_implementations);
  r.recompute = coin() ? draw_layers(r.recompute, s) : Recompute{};
  if (r.recompute.kind != RecomputeKind::none) r.given = {"recompute"};
  if (played && plays(s)) {
    r.layout.schedule = one_of<std::string>({"zb-h1", "zb-1p", "zb-2p"});
    r.given.insert("schedule");
  } else if (pick(0, 3) == 0) {  // whatever it asks of the axes that are left open
    r.layout.schedule = one_of(s.schedules);
    r.given.insert("schedule");
  }
  if (coin()) r.offload = draw_offload(r, s);
  const auto has = [&](const char* word) { return std::count(s.software.begin(), s.software.end(), word) > 0; };
  r.ep_overlap = experts && has("ep-overlap") && coin();  // switches that a stack refuses beside other choices
  r.tp_overlap = has("tp-overlap") && coin();
  r.compile = has("compile") && coin();
  if (pick(0, 3) == 0) r.given.insert("sp");
  out.question = Question{out.model.get(), &s, cluster_of(one_of<i64>({1, 2, 4, 6, 8, 16}), 0), r};
  const double wanted = summarise(*out.model).params_total.real() * 18 * static_cast<double>(pick(1, 30)) / 8 /
                        static_cast<double>(out.question.cluster.gpus);
  out.question.cluster = cluster_of(out.question.cluster.gpus, wanted + 1.4e9 + static_cast<double>(pick(0, 4)) * 1e9);
  if (pick(0, 3) == 0) {  // links that form a torus
    out.question.cluster.platform.data["torus_axes"] = Datum{static_cast<double>(pick(1, 3)), Rung::given, "drawn"};
  }
  out.space = make_space(out.question);
  return out;
}

// A space of at most `most` ordinals: axes lose values at random. (Draws of a property are remembered one by
// one, which thousands are too many for.)
template <class T>
void thin(std::vector<T>& axis, std::mt19937_64& random) {
  if (axis.size() > 1) axis.erase(axis.begin() + static_cast<std::ptrdiff_t>(random() % axis.size()));
}
void shrink(Space& s, std::uint64_t most) {
  std::mt19937_64 random(static_cast<std::uint64_t>(pick(0, 1000000)));
  const std::array sizes = {&s.tp, &s.cp, &s.pp, &s.vpp, &s.micro_batch, &s.ep, &s.etp, &s.hsdp};
  while (s.size() > most) {
    for (std::vector<i64>* axis : sizes) {
      if (random() % 2 == 0) thin(*axis, random);
    }
    if (random() % 4 == 0) thin(s.zero, random);
    if (random() % 2 == 0) thin(s.recompute, random);
    if (random() % 4 == 0) thin(s.loss, random);
    if (random() % 4 == 0) thin(s.split, random);
    if (random() % 8 == 0 && s.sp.size() > 1) s.sp.pop_back();
  }
}

struct Brute {
  std::vector<Found> fits;
  std::uint64_t legal = 0;
};

// Every ordinal by the functions of `estimate`; of ordinals that are one layout (sp without tp, a shard group of all
// ranks, a split that is the stack's own), the first.
Brute brute_force(const Drawn& d, Objective objective) {
  Brute out;
  std::set<std::tuple<Position, bool, i64, std::vector<i64>>> known;
  for (std::uint64_t i = 0; i < d.space.size(); ++i) {
    const Position at = d.space.position(i);
    const std::optional<Recipe> r = recipe_at(d.question, d.space, at);
    if (!r || (d.space.dp && r->layout.dp != *d.space.dp)) continue;
    if (r->layout.layers_per_stage.empty() == false && r->layout.vpp > 1) continue;
    const Result<Analysed> a = analyse_recipe(*d.model, *d.question.stack, *r);
    if (!a) continue;
    ++out.legal;
    const MemoryEstimate<double> memory = memory_estimate<double>(*a, d.question.cluster);
    if (memory.verdict != Verdict::fits) continue;
    const Estimate e = estimate<double>(*a, d.question.cluster);
    const StageMemory<double>& peak = memory.stages[memory.peak_stage];
    const Bytes<double> most = memory.high_allocated.value_or(peak.allocated);
    Priced p{i, e.step ? e.step->seconds.number() : 0, (most + peak.context).number(), peak.device.number(),
             memory.verdict};
    Position one = at;
    for (const PlanAxis axis : {PlanAxis::sp, PlanAxis::split, PlanAxis::hsdp}) one[static_cast<std::size_t>(axis)] = 0;
    const Layout& l = r->layout;
    const bool shards = l.zero > 0 && l.hsdp < l.dp * l.cp;
    std::vector<i64> layers;
    for (const Stage& stage : a->stages) layers.push_back(stage.layer_count());
    if (known.emplace(one, l.sp, shards ? l.hsdp : 0, std::move(layers)).second)
      out.fits.push_back({p, rank(objective, p, r->micro_batch)});
  }
  return out;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }
void expect_near(double a, double b, const char* what) {
  if (!near(a, b)) RC_FAIL(std::string(what) + ": " + std::to_string(a) + " by the tables, " + std::to_string(b));
}

// What the tables say of an ordinal is what `estimate` says of its recipe.
void tables_equal_estimate(const std::string& stack_name) {
  const Drawn d = draw(any_generation(stack_name), true, coin() && coin());
  Tables tables(d.question, d.space);
  int compared = 0;
  for (int tries = 0; tries < 400 && compared < 2; ++tries) {
    const std::uint64_t ordinal = *rc::gen::inRange<std::uint64_t>(0, d.space.size());
    const Result<Priced> priced = price_ordinal(d.question, d.space, tables, ordinal);
    const std::optional<Recipe> r = recipe_at(d.question, d.space, d.space.position(ordinal));
    const Result<Analysed> a = r ? analyse_recipe(*d.model, *d.question.stack, *r) : Error{"", "no recipe", ""};
    if (!priced) continue;
    RC_ASSERT(a.ok());
    ++compared;
    const Estimate e = estimate<double>(*a, d.question.cluster);
    const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
    const Bytes<double> most = e.memory.high_allocated.value_or(peak.allocated);
    expect_near(priced->needed, (most + peak.context).number(), "allocated");
    expect_near(priced->device, peak.device.number(), "device");
    RC_ASSERT(e.step.has_value());
    expect_near(priced->seconds, e.step->seconds.number(), "seconds");
  }
}

// The layout that brute force prefers, and what the search makes of it.
std::string words_of(const Drawn& d, const Found& f) {
  Tables tables(d.question, d.space);
  const Recipe r = recipe_at(d.question, d.space, d.space.position(f.priced.ordinal)).value();
  const Layout& l = r.layout;
  const Result<Priced> priced = price_ordinal(d.question, d.space, tables, f.priced.ordinal);
  std::string out;
  for (const auto& [key, value] :
       {std::pair{"tp", l.tp}, std::pair{"cp", l.cp}, std::pair{"pp", l.pp}, std::pair{"vpp", l.vpp},
        std::pair{"dp", l.dp}, std::pair{"ep", l.ep}, std::pair{"etp", l.etp}, std::pair{"hsdp", l.hsdp},
        std::pair{"zero", i64{l.zero}}, std::pair{"micro-batch", r.micro_batch}})
    out += std::string(key) + " " + std::to_string(value) + " ";
  const Result<Analysed> a = analyse_recipe(*d.model, *d.question.stack, r);
  if (a) {
    const Estimate e = estimate<double>(*a, d.question.cluster);
    const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
    out += std::string("recompute ") + std::to_string(static_cast<int>(r.recompute.kind)) + " " +
           name(e.memory.verdict) + " " + std::to_string((peak.allocated + peak.context).number()) + " device " +
           std::to_string(peak.device.number()) + " stage " + std::to_string(e.memory.peak_stage) + "; tables: ";
    if (priced)
      out += std::string(name(priced->verdict)) + " " + std::to_string(priced->needed) + " device " +
             std::to_string(priced->device) + " ";
  }
  return out + (priced ? "priced " + std::to_string(priced->seconds) : priced.error().text());
}

// Few tokens: exchanges of weights take all the time.
void shorten(Drawn& d) {
  d.question.recipe.seq = 32;
  d.question.recipe.given.insert("seq");
  d.space = make_space(d.question);
}

void equals_brute_force(Drawn d) {
  shrink(d.space, 250);
  const Objective objective = one_of<Objective>({Objective::time, Objective::memory});
  const std::size_t top = 5;
  const std::uint32_t parts = static_cast<std::uint32_t>(pick(1, 3));
  std::vector<SearchResult> results;
  for (std::uint32_t i = 0; i < parts; ++i) {
    Search search(d.question, d.space, objective, {}, top, i, parts);
    const std::uint64_t budget = static_cast<std::uint64_t>(pick(1, 5000));
    while (search.advance(budget)) {
    }
    results.push_back(search.result());
  }
  const SearchResult found = merge(std::move(results), top);
  Brute brute = brute_force(d, objective);
  RC_ASSERT(found.space == d.space.size());
  RC_ASSERT(found.checked + found.pruned == found.space);
  std::uint64_t rejected = 0;
  for (const Reason& r : found.rejected) rejected += r.count;
  RC_ASSERT(rejected + brute.legal >= found.space);
  if (found.best.size() != std::min(top, brute.fits.size())) {
    std::string why =
        "search finds " + std::to_string(found.best.size()) + ", brute force " + std::to_string(brute.fits.size());
    if (!brute.fits.empty()) why += ": " + words_of(d, brute.fits.front());
    for (const Reason& r : found.rejected) why += "; " + std::to_string(r.count) + " " + r.example.text();
    RC_FAIL(why);
  }
  std::sort(brute.fits.begin(), brute.fits.end(), [](const Found& a, const Found& b) { return a.rank < b.rank; });
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    if (!near(found.best[i].rank.first, brute.fits[i].rank.first))
      RC_FAIL("best, " + words_of(d, found.best[i]) + " against " + words_of(d, brute.fits[i]));
  }
}

void search_equals_brute_force(const Stack& stack, bool with_experts, bool played, bool short_sequences = false) {
  Drawn d = draw(stack, with_experts, played);
  if (short_sequences) shorten(d);
  equals_brute_force(std::move(d));
}

TEST(Search, TablesEqualEstimate) {
  const std::vector<Stack>& all = stacks().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stack& s = all[i];
    if (i + 1 < all.size() && all[i + 1].name == s.name) continue;  // once for all generations
    SCOPED_TRACE(s.name);
    EXPECT_TRUE(rc::check("tables equal estimate on " + s.name, [&] { tables_equal_estimate(s.name); }));
  }
}

// Memory by the tables of every plan that cells look at, up to `most`, against the ledger. Returns how many.
int memory_tables_equal_ledger(const std::string& stack_name, std::size_t most) {
  struct Keep : Cells::Sink {
    std::vector<Priced> found;
    void priced(const Priced& p, std::int64_t) override { found.push_back(p); }
    void short_of_memory(const Priced& p) override { found.push_back(p); }
    double nearest_needed() const override { return -1; }
  } keep;
  Drawn d = draw(any_generation(stack_name), true, coin() && coin());
  d.question.cluster.memory_only = true;
  Tables tables(d.question, d.space);
  Cells cells(d.question, d.space, tables, keep);
  std::mt19937_64 random(static_cast<std::uint64_t>(pick(0, 1000000)));
  for (int tries = 0; tries < 40 && keep.found.size() < most; ++tries) cells.look(random() % cells.count());
  std::shuffle(keep.found.begin(), keep.found.end(), random);
  keep.found.resize(std::min(keep.found.size(), most));
  for (const Priced& p : keep.found) {
    const Recipe r = recipe_at(d.question, d.space, d.space.position(p.ordinal)).value();
    const Result<Analysed> a = analyse_recipe(*d.model, *d.question.stack, r);
    RC_ASSERT(a.ok());
    const MemoryEstimate<double> memory = memory_estimate<double>(*a, d.question.cluster);
    const StageMemory<double>& peak = memory.stages[memory.peak_stage];
    expect_near(p.needed, (memory.high_allocated.value_or(peak.allocated) + peak.context).number(), "allocated");
    expect_near(p.device, peak.device.number(), "device");
  }
  return static_cast<int>(keep.found.size());
}

// 100,000 recipes in all where properties draw 100 cases, of every stack as many.
TEST(Search, TablesOfMemoryEqualTheLedger) {
  constexpr int kWanted = 1000 * PREFLOP_CASES;
  std::set<std::string> names;
  for (const Stack& s : stacks().all()) names.insert(s.name);
  const int each = kWanted / static_cast<int>(names.size()) + 1;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    int compared = 0;
    for (int rounds = 0; rounds < 60 && compared < each; ++rounds) {
      EXPECT_TRUE(rc::check("memory by tables equals the ledger on " + name, [&] {
        if (compared < each) compared += memory_tables_equal_ledger(name, 250);
      }));
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GE(compared, each);
  }
}

TEST(Search, EqualsBruteForce) {
  const std::vector<Stack>& all = stacks().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stack& s = all[i];
    if (i + 1 < all.size() && all[i + 1].name == s.name) continue;  // once for all generations
    SCOPED_TRACE(s.name);
    EXPECT_TRUE(rc::check("search equals brute force on " + s.name,
                          [&] { search_equals_brute_force(any_generation(s.name), true, coin() && coin()); }));
  }
}

// A job whose weights are longer on their way than its layers compute: steps with full recomputation came out a
// rounding shorter than those without, and the bound cut plans that were as good as the ones it came from.
TEST(Search, TheBoundLeavesRoomForRounding) {
  const Catalogues catalogues = std::move(Catalogues::load()).value();
  Request request;
  request.model = "gpt:layers=4,heads=24,kv_heads=2,head_dim=16,vocab=46164,ffn=1248,hidden=1600,gated=true";
  request.on = "4xh100-sxm";
  request.keys = {{"stack", "foundry@0.0.4"}, {"seq", "64"}, {"global_batch", "24"}, {"attention", "fa2"}};
  const Result<Draft> drafted = draft(request, catalogues);
  ASSERT_TRUE(drafted.ok());
  const Result<Question> question = ask(request, *drafted);
  ASSERT_TRUE(question.ok());
  const Space space = make_space(*question);
  std::vector<std::vector<Found>> best;
  for (const Search::Bound bound : {Search::Bound::seeded, Search::Bound::none}) {
    Search search(*question, space, Objective::time, {}, 5, bound);
    while (search.advance(space.size())) {
    }
    best.push_back(search.result().best);
  }
  ASSERT_EQ(best[0].size(), best[1].size());
  for (std::size_t i = 0; i < best[0].size(); ++i) EXPECT_EQ(best[0][i].priced.ordinal, best[1][i].priced.ordinal);
}

// Beside exchanges that take longer recomputation costs nothing: its steps are as long but for rounding, which no bound
// may take for slower.
TEST(Search, EqualsBruteForceWhereRecomputationIsFree) {
  const std::vector<Stack>& all = stacks().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stack& s = all[i];
    const bool newest = i + 1 == all.size() || all[i + 1].name != s.name;
    if (!newest || std::find(s.zero_allowed.begin(), s.zero_allowed.end(), 3) == s.zero_allowed.end()) continue;
    SCOPED_TRACE(s.name);
    EXPECT_TRUE(rc::check("search equals brute force of short sequences on " + s.name,
                          [&] { search_equals_brute_force(any_generation(s.name), false, false, true); }));
  }
}

// A pipeline that the exchange of experts overlaps needs virtual stages: what asks for least has two chunks, not one.
TEST(Search, EqualsBruteForceOfOverlappedExperts) {
  int compared = 0;
  EXPECT_TRUE(rc::check("search equals brute force of overlapped experts", [&] {
    constexpr int kDraws = 8;  // until one has experts and can be cut in two
    for (int i = 0; i < kDraws; ++i) {
      Drawn d = draw(stack("megatron"), true, false);
      Question& q = d.question;
      if (!has_experts(*d.model) || q.cluster.gpus % 2 != 0) continue;
      q.recipe.ep_overlap = true;
      q.recipe.layout.pp = 2;
      q.recipe.given.insert("pp");
      if (q.recipe.recompute.modules == std::vector<std::string>{"moe"}) q.recipe.recompute = {};
      d.space = make_space(q);
      equals_brute_force(d);
      ++compared;
      return;
    }
  }));
  EXPECT_GT(compared, 10);
}

// A schedule that is played may be longer where a piece is shorter: no bound by time may cut its plans.
TEST(Search, EqualsBruteForceOfPlayedSchedules) {
  for (const Stack& s : stacks().all()) {
    if (!plays(s)) continue;
    EXPECT_TRUE(rc::check("search equals brute force of schedules played on " + s.full_name(),
                          [&] { search_equals_brute_force(s, coin(), true); }));
  }
}

}  // namespace
}  // namespace preflop
