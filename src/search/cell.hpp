// The loops of the search. A cell is one choice of tp, cp, sp and pp; inside it every other axis is gone
// through, outermost what decides most: what is refused there takes all that hangs below it along.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/search/search.hpp"

namespace preflop {

// Reasons that are met often enough to be counted without making their text each time.
enum class Quick : std::uint8_t {
  cluster,
  given_dp,
  batch,
  experts,
  interleave,
  same,
  countless,
  states,
  memory,
  device,
  tight,
  slow,
  bound
};
inline constexpr int kQuick = 13;

class Cells {
 public:
  struct Sink {
    virtual ~Sink() = default;
    // `memory` says whether it fits.
    virtual void priced(const Priced& priced, std::int64_t micro_batch) = 0;
    // Excluded by its states alone; still the nearest where nothing fits.
    virtual void short_of_memory(const Priced& priced) = 0;
    virtual double nearest_needed() const = 0;  // < 0: none yet
    // A plan of more seconds is of no use.
    virtual double slowest_of_use() const { return std::numeric_limits<double>::infinity(); }
  };
  Cells(const Question& question, const Space& space, Tables& tables, Sink& sink);

  std::uint64_t count() const { return cells_; }
  std::uint64_t inner() const { return inner_; }  // ordinals of a cell
  std::uint64_t group(std::uint64_t cell) const;  // cells of one group share rows
  std::uint64_t cell_of(const Position& at) const;
  void look(std::uint64_t cell);
  void only(const Position& at);  // one value of every axis
  void reject(Quick quick, std::uint64_t ordinal, std::uint64_t count);
  void counts(SearchResult& out) const;

 private:
  struct Variant {  // zero and hsdp
    std::uint32_t zero = 0, hsdp = 0;
    std::uint64_t offset = 0;       // of its ordinals to those of the first
    std::vector<StageSizes> sizes;  // by class
    struct States {
      StateTerms<double> terms;
      std::array<std::int64_t, 2> seen{};  // ep and etp, under which they are
    };
    std::array<States, 2> states_of;  // by: do stages interleave?
    const StateTerms<double>* states = nullptr;
    std::vector<StateSeconds<double>> once;  // by class; empty: not asked for yet
    bool feasible = false, accumulates = true;
    bool beside = false;                     // the states take time of every micro-batch: gathered, or on the host
    std::uint64_t open = 0;                  // bit by loss: feasible, and perhaps fast enough
    std::vector<const StageForms*> forms;    // by class
    std::vector<std::vector<double>> bytes;  // by class and form: what follows parameters, and the residue
    std::vector<double> most;                // as activations_: the most of these beside each of them
  };
  // The splits of a pipeline: those that can be, and those that cannot, as many for one reason.
  struct Pipelines {
    struct Open {
      std::uint32_t vpp = 0, split = 0;
      const Structure* structure = nullptr;
      std::optional<bool> legal;  // in the cell that is looked at
      std::size_t reason = 0;     // where it is not
    };
    struct Closed {
      std::uint32_t vpp = 0, split = 0;  // of the first
      std::uint64_t splits = 0;
      std::optional<std::size_t> reason;  // none: another ordinal is the same
    };
    bool ready = false;
    std::vector<Open> open;
    std::vector<Closed> closed;
  };
  std::uint64_t ordinal() const {  // of at_
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) out += at_[i] * strides_[i];
    return out;
  }
  bool wanted(PlanAxis axis, std::uint32_t digit) const;
  void set(PlanAxis axis, std::uint32_t digit) { at_[static_cast<std::size_t>(axis)] = digit; }
  std::uint64_t below(std::initializer_list<PlanAxis> axes) const;  // legal zero and hsdp, given these digits
  bool legal(std::uint64_t count);
  std::size_t reason_of(const Error& error, std::uint64_t ordinal);
  void neutral();
  void set_schedule();
  void pipelines();
  void micro_batches();
  void experts();
  Pipelines& pipelines_of_pp();
  void set_pipeline(std::uint32_t vpp, std::uint32_t split);
  void close(const Pipelines::Closed& closed, std::uint64_t count);
  bool open(Pipelines::Open& open, std::uint64_t count);
  void structures();
  void structure(const Structure& structure);
  void set_times(const Structure& structure);
  bool short_before();
  std::size_t pipeline_slot() const;  // of ep, etp, vpp and split
  bool any_open(std::uint32_t loss) const;
  void price(const Structure& structure, std::uint32_t recompute, std::uint32_t loss);
  void prepare(const Structure& structure);
  void set_states(const Structure& structure, Variant& variant);
  void set_most(const Structure& structure);
  bool overshadowed(const FormFamily& family, std::size_t first, std::size_t activation) const;
  void bound_by_time(const Structure& structure, std::uint32_t loss);
  void leave_out(Quick quick, const Variant& variant, std::uint64_t count);
  void exclude(const Structure& structure, Variant& variant);
  Priced memory_of(const Structure& structure, const std::vector<const BlockRow*>& rows, const Variant& variant) const;
  bool host_short(const Structure& structure, const std::vector<const BlockRow*>& rows, const Variant& variant) const;
  void see(const Structure& structure, const std::vector<const BlockRow*>& rows);
  void set_activations(const std::vector<const BlockRow*>& rows);
  void set_run(const Structure& structure, const std::vector<const BlockRow*>& rows, const Variant& variant,
               std::size_t kind);
  std::size_t fullest_of(const Variant& variant, double allocated) const;
  double reserved_of(const Variant& variant, std::size_t kind, const std::vector<const BlockRow*>& rows) const;
  // `least`: what its pieces alone make sure of, where a schedule is played.
  double seconds_of(const Structure& structure, const std::vector<const BlockRow*>& rows, Variant& variant,
                    bool least = false);
  const std::vector<const BlockRow*>& rows_of(std::uint32_t recompute, std::uint32_t loss, bool memory);

  const Question& question_;
  const Space& space_;
  Tables& tables_;
  Sink& sink_;
  std::uint64_t cells_ = 0, inner_ = 0;
  std::optional<Position> only_;
  Position at_{};
  std::array<std::uint64_t, kPlanAxes> strides_{};
  Recipe recipe_;  // of `at_`
  bool timed_ = false;
  bool sums_ = false;  // reserved memory is more than a factor of the peak
  double capacity_ = 0, context_ = 0, reserved_factor_ = 1, allocated_band_ = 0, tight_band_ = 0;
  double at_most(double allocated) const { return allocated + allocated * allocated_band_; }  // as upper_end()
  std::vector<Variant> variants_;
  std::vector<Pipelines> pipelines_;                          // by pp
  std::vector<const BlockRow*> weights_;                      // of the blocks, under ep and etp
  std::array<std::optional<Schedule<double>>, 2> schedules_;  // by: do stages interleave? Under this micro-batch
  std::vector<char> legal_experts_;
  std::vector<char> short_;                 // by pipeline_slot(): states alone are too much, at a smaller micro-batch
  std::vector<double> flights_, residues_;  // by class
  // What layouts of one pipeline share, by class, as long as its blocks have the same rows.
  struct Shared {
    std::vector<const BlockRow*> rows;  // of the class's blocks
    bool run = false, activations = false;
  };
  std::vector<Shared> shared_;
  std::vector<StageRun<double>> runs_;
  bool runs_accumulate_ = true;
  bool pipeline_ready_ = false;
  double pipeline_seconds_ = 0;       // of runs_
  std::vector<const Linear*> peaks_;  // activations that may be at a peak, by class
  std::vector<double> activations_;   // of these
  std::vector<std::size_t> first_;    // by class: where its own begin; and where the last ones end
  std::vector<char> overshadowed_;
  Schedule<double> schedule_;
  std::vector<std::vector<const BlockRow*>> rows_;  // by recomputation and loss
  enum class Ready : std::uint8_t { no, timed, all };
  std::vector<Ready> rows_ready_;
  std::uint64_t pruned_ = 0, looked_ = 0, priced_ = 0;
  std::vector<Reason> reasons_;
  std::map<std::string, std::size_t, std::less<>> reason_index_;
  std::array<int, kQuick> quick_;
};

}  // namespace preflop
