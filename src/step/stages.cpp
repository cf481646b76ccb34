#include "src/step/stages.hpp"

#include <algorithm>
#include <numeric>

#include "src/stack/stack_reader.hpp"

namespace preflop {

bool same_work(const Stage& a, const Stage& b) {
  const auto equal = [](const BlockRun& x, const BlockRun& y) { return x.block == y.block && x.count == y.count; };
  return a.embedding == b.embedding && a.head == b.head &&
         std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(), equal);
}

namespace {

Error stage_error(const char* where, std::string what, std::string valid) {
  return {where, std::move(what), std::move(valid)};
}

// Equal middle stages, the rest split over the first and the last stage (Megatron's
// --decoder-first/last-pipeline-num-layers). The last one gets the smaller half: it also has the head.
std::vector<std::int64_t> first_last_split(std::int64_t layers, std::int64_t pp) {
  for (std::int64_t middle = (layers + pp - 1) / pp; middle >= 1; --middle) {
    const std::int64_t rest = layers - (pp - 2) * middle;
    if (rest < 2) continue;
    std::vector<std::int64_t> out(static_cast<std::size_t>(pp), middle);
    out.front() = rest - rest / 2;
    out.back() = rest / 2;
    return out;
  }
  return {};
}

// Blocks are dealt in order: a stage is full once the work so far passes its share of the whole
// (nanotron models/base.py build_model). The last of `costs` is the head: it stands on the last stage.
std::vector<std::int64_t> split_by_cost(const std::vector<double>& costs, std::int64_t pp) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(pp), 0);
  const double whole = std::accumulate(costs.begin(), costs.end(), 0.0);
  double done = 0;
  std::int64_t stage = 0;
  for (std::size_t i = 0; i + 1 < costs.size(); ++i) {
    ++out[static_cast<std::size_t>(stage)];
    done += costs[i];
    if (done > whole * static_cast<double>(stage + 1) / static_cast<double>(pp) && stage + 1 < pp) ++stage;
  }
  return out;
}

// Equal chunks; the last one holds what is left beside multi-token prediction and the loss (Megatron-Bridge
// recipes/deepseek: "Et*4|(t*4|)*14tmL"); where nothing would be left the embedding takes the place of a layer, too
// ("Et|(tt|)*30mL"), and a virtual stage may hold the loss alone.
std::vector<std::int64_t> short_last_chunk(std::int64_t layers, std::int64_t mtp, const Layout& layout) {
  const std::int64_t chunks = layout.pp * layout.vpp;
  for (const std::int64_t embedding : {0, 1}) {
    const std::int64_t each = (layers + mtp + 1 + embedding + chunks - 1) / chunks;
    const std::int64_t left = layers - each * (chunks - 1) + embedding;
    if (each - embedding < 1 || left < (layout.vpp == 1 || embedding == 0 ? 1 : 0)) continue;
    std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), each);
    out.front() -= embedding;
    out.back() = left;
    return out;
  }
  return {};
}

// The numbers of chunks that cut the layers evenly, alone or beside the slots of embedding and loss.
std::string even_chunks(std::int64_t layers, bool slots) {
  std::string out = "a divisor of " + std::to_string(layers);
  if (slots) out += ", or of " + std::to_string(layers + 2) + " with embedding and loss as slots";
  std::string list;
  for (std::int64_t d = 1; d <= layers + 2; ++d) {
    const bool even = layers % d == 0 || (slots && (layers + 2) % d == 0);
    if (even) list += (list.empty() ? ": " : ", ") + std::to_string(d);
  }
  return out + list;
}

Split of_chunks(std::vector<std::int64_t> chunks, std::int64_t pp, std::string how) {
  Split out{std::vector<std::int64_t>(static_cast<std::size_t>(pp), 0), std::move(how), std::move(chunks)};
  for (std::size_t i = 0; i < out.chunks.size(); ++i) out.layers[i % out.layers.size()] += out.chunks[i];
  return out;
}

// Chunks of as many layers each; with slots the first stage's first and the last stage's last are layers short.
Split of_stages(std::vector<std::int64_t> layers, std::int64_t vpp, std::string how) {
  Split out{std::move(layers), std::move(how), {}};
  for (std::int64_t chunk = 0; chunk < vpp; ++chunk) {
    for (std::size_t i = 0; i < out.layers.size(); ++i) {
      const std::int64_t full = (out.layers[i] + vpp - 1) / vpp;
      const bool is_short = i == 0 ? chunk == 0 : chunk == vpp - 1;
      out.chunks.push_back(is_short ? out.layers[i] - full * (vpp - 1) : full);
    }
  }
  return out;
}

}  // namespace

Result<Split> split_evenly(std::int64_t layers, const Layout& layout, const Stack& stack) {
  const std::string what = "stack " + stack.full_name() + " cuts layers with a state space ";
  if (layout.vpp > 1) return stage_error("--vpp", what + "into no virtual stages", "1");
  const auto& given = layout.layers_per_stage;
  if (std::any_of(given.begin(), given.end(), [&](std::int64_t n) { return n != given.front(); }))
    return stage_error("--layers-per-stage", what + "into equal stages", "leave it out");
  if (layers % layout.pp != 0)
    return stage_error("--pp",
                       what + "into equal stages, and " + std::to_string(layout.pp) + " do not divide the " +
                           std::to_string(layers) + " layers",
                       even_chunks(layers, false));
  return of_stages(std::vector<std::int64_t>(static_cast<std::size_t>(layout.pp), layers / layout.pp), 1, "");
}

Result<Split> split_layers(std::int64_t layers, const Layout& layout, const Stack& stack, std::int64_t mtp,
                           const std::vector<double>& costs) {
  const std::int64_t pp = layout.pp;
  const std::int64_t chunks = pp * layout.vpp;
  if (!layout.layers_per_stage.empty()) {
    const auto& given = layout.layers_per_stage;
    const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(given.size()) != pp || sum != layers) {
      return stage_error("--layers-per-stage",
                         std::to_string(given.size()) + " stages with " + std::to_string(sum) + " layers in all",
                         "give " + std::to_string(pp) + " counts that sum to " + std::to_string(layers));
    }
    for (std::int64_t count : given) {
      if (count >= 1 && count % layout.vpp == 0) continue;
      return stage_error("--layers-per-stage", "a stage of " + std::to_string(count) + " layers",
                         layout.vpp > 1 ? "multiples of vpp" : "1 layer or more a stage");
    }
    return of_stages(given, layout.vpp, "given");
  }
  if (stack.split_by_cost && pp > 1 && layout.vpp == 1 && !costs.empty())
    return of_stages(split_by_cost(costs, pp), 1, "by the work of the layers and the output layer");
  // Chunks that hold nothing but the embedding or the loss are legal: slots, not layers, are dealt.
  const bool by_slots = stack.uneven_stages && layout.vpp > 1 && (layers + 2) % chunks == 0;
  if (chunks > layers && !by_slots) {
    return stage_error(layout.vpp > 1 ? "--vpp" : "--pp",
                       std::to_string(chunks) + " pipeline chunks but only " + std::to_string(layers) + " layers",
                       "pp x vpp of at most " + std::to_string(layers) +
                           (stack.uneven_stages ? ", or " + std::to_string(layers + 2) +
                                                      " with embedding and loss as slots and vpp of 2 or more"
                                                : std::string()));
  }
  const std::size_t n = static_cast<std::size_t>(pp);
  constexpr const char* kShort = "equal chunks; the last one holds what is left, multi-token prediction and the loss";
  if (mtp > 0 && pp > 1 && stack.uneven_stages) {
    std::vector<std::int64_t> dealt = short_last_chunk(layers, mtp, layout);
    if (!dealt.empty()) return of_chunks(std::move(dealt), pp, kShort);
  }
  if (layers % chunks == 0) return of_stages(std::vector<std::int64_t>(n, layers / pp), layout.vpp, "");
  if (stack.uneven_stages && (layers + 2) % chunks == 0) {
    std::vector<std::int64_t> out(n, (layers + 2) / pp);
    out.front() -= 1;
    out.back() -= 1;
    return of_stages(std::move(out), layout.vpp, "embedding and loss count as slots");
  }
  if (stack.uneven_stages && layout.vpp == 1 && pp > 1) {
    std::vector<std::int64_t> out = first_last_split(layers, pp);
    if (!out.empty()) return of_stages(std::move(out), 1, "first and last stage hold the rest");
  }
  if (stack.stage_layouts && layout.vpp > 1 && layers % pp != 0 && (layers + 2) % pp != 0) {
    std::vector<std::int64_t> dealt = short_last_chunk(layers, 0, layout);
    if (!dealt.empty()) return of_chunks(std::move(dealt), pp, kShort);
  }
  return stage_error(
      layout.vpp > 1 ? "--vpp" : "--pp",
      std::to_string(chunks) + " pipeline chunks do not divide the " + std::to_string(layers) + " layers",
      even_chunks(layers, stack.uneven_stages));
}

namespace {

// Is layer k of its chunk, the nth of its stage (both from 0), one of those that are recomputed or offloaded, or the
// first of its unit?
bool is_chosen(const Recipe& recipe, std::int64_t k, std::int64_t nth) {
  const Recompute& recompute = recipe.recompute;
  if (recipe.offload.some_layers()) return k < recipe.offload.activations;
  switch (recompute.which) {
    case RecomputeLayers::first:
      return k < recompute.layers;
    case RecomputeLayers::every:
      return (nth + 1) % recompute.layers == 0;
    case RecomputeLayers::units:
      return k % recompute.layers == 0;
    case RecomputeLayers::all:
      break;
  }
  return true;
}

}  // namespace

std::vector<Stage> make_stages(const Model& model, const Split& split, const Recipe& recipe) {
  // With interleaving a stage holds vpp chunks from all over the model; the layers are dealt in order.
  std::vector<int> kinds;
  for (const BlockRun& run : model.layers) kinds.insert(kinds.end(), static_cast<std::size_t>(run.count), run.block);
  std::vector<Stage> out(split.layers.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].index = static_cast<std::int64_t>(i);
  std::size_t next = 0;
  for (std::size_t i = 0; i < split.chunks.size(); ++i) {
    Stage& stage = out[i % out.size()];
    std::int64_t nth = stage.layer_count();
    for (std::int64_t k = 0; k < split.chunks[i] && next < kinds.size(); ++k, ++next, ++nth) {
      const int block = is_chosen(recipe, k, nth) ? kinds[next] : model.twin(kinds[next]);
      if (!stage.layers.empty() && stage.layers.back().block == block)
        ++stage.layers.back().count;
      else
        stage.layers.push_back({block, 1});
    }
  }
  out.front().embedding = true;
  out.back().head = true;
  return out;
}

// Megatron-LM core/transformer/transformer_block.py _checkpointed_forward takes N layers at a time and has no shorter
// last unit; core/transformer/multi_token_prediction.py asserts one layer a unit.
Status check_units(const Model& model, const Split& split, const Recompute& recompute) {
  if (!recompute.units() || recompute.layers == 1) return Nothing{};
  const auto refuse = [&](const std::string& why) {
    return stage_error("--recompute", recompute_text(recompute) + ": " + why, "full, or a divisor of these layers");
  };
  if (model.mtp_layers() > 0)
    return stage_error("--recompute",
                       recompute_text(recompute) + " with multi-token prediction, whose layers are units of one",
                       "full");
  for (const std::int64_t layers : split.chunks) {
    if (layers % recompute.layers != 0)
      return refuse("units of " + std::to_string(recompute.layers) + " do not divide the " + std::to_string(layers) +
                    " layers of a " + (split.chunks.size() > split.layers.size() ? "virtual stage" : "stage"));
  }
  return Nothing{};
}

bool splits_backward(const Layout& layout) { return layout.order().starts_with("zb-"); }

double in_flight(const Layout& layout, std::int64_t stage, std::int64_t micro_batches) {
  if (layout.order() == "gpipe") return static_cast<double>(micro_batches);
  // Zero-bubble (arXiv:2401.10241 section 2.3): every stage may hold what 1f1b's first one does, or twice that, and the
  // paper's search makes use of it. Its fullest stage is the second, where zb-1p measures 2, 3, 1 and 1 GiB above 1f1b
  // (table 4, four models); a micro-batch is 3.6, 3.6, 1.1 and 0.9 GiB, what its gradients of weights need 0.4 of it.
  if (layout.order() == "zb-h1" || layout.order() == "zb-1p")
    return static_cast<double>(std::min(layout.pp, micro_batches));
  if (layout.order() == "zb-2p") return static_cast<double>(std::min(2 * layout.pp, micro_batches));
  if (layout.vpp == 1) return static_cast<double>(std::min(layout.pp - stage, micro_batches));
  // Interleaved 1F1B: the warm-up of rank i runs 2 (pp - i - 1) + (vpp - 1) pp chunks forward, and one
  // more before the first backward (Narayanan et al. 2021, section 2.2; Megatron-LM schedules.py).
  const std::int64_t chunks =
      std::min(2 * (layout.pp - stage - 1) + (layout.vpp - 1) * layout.pp + 1, micro_batches * layout.vpp);
  return static_cast<double>(chunks) / static_cast<double>(layout.vpp);
}

}  // namespace preflop
