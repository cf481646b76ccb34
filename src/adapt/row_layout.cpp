// The batch and the layout of a row: what is not stated is derived, or assumed by the documented default.
#include <array>

#include "src/adapt/row_builder.hpp"

namespace preflop::rows {

namespace {

// What the stack's own software is able to do, where that decides whether an empty cell is a question.
bool has_axis(std::string_view stack, std::string_view axis) {
  if (stack == "megatron" || stack == "torchtitan" || stack.empty()) return true;
  if (axis == "cp") return stack == "megatron-fsdp";
  return stack == "megatron-fsdp" || stack == "megatron-deepspeed" || stack == "nanotron" || stack == "maxtext" ||
         stack == "textbook";
}

}  // namespace

void Builder::batch() {
  const std::int64_t own = whole("seq");
  const std::int64_t longest = whole("longest");
  seq_ = own > 0 ? own : longest;
  if (seq_ == 0)
    skip(SkipKind::cell, "sequence length");
  else
    key("seq", num(seq_));
  mbs_ = whole("mbs");
  gbs_ = whole("gbs");
  const std::string* packing = cell("packing");
  const std::int64_t mean = whole("mean_length");
  if (packing != nullptr && *packing != "unpacked" && mean > 0 && mean < seq_) {
    key("packing", "on");
    key("mean_length", num(mean));
  } else if (packing != nullptr && *packing != "packed") {
    later("packing", *packing, "taken as full sequences");
  }
}

// A release of Megatron from before a year: "megatron@2021" is of 2021.
bool Builder::before(std::string_view year) const {
  return out_.stack == "megatron" && generation_.starts_with("20") && generation_ < year;
}

void Builder::layout() {
  std::int64_t* const sizes[] = {&tp_, &pp_, &cp_};
  constexpr std::array<const char*, 3> kNames = {"tp", "pp", "cp"};
  const bool product_only =
      cell("mp") != nullptr && row_.cell("tp") == nullptr && row_.cell("pp") == nullptr && whole("mp") > 1;
  if (row_.flag("layout-unstated") || product_only) skip(SkipKind::cell, "tp, pp");
  const bool old = before("2024");
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::int64_t size = whole(kNames[i]);
    if (size > 0)
      *sizes[i] = size;
    else if (gpus_ > 1 && has_axis(out_.stack, kNames[i]) && !(old && i == 2))
      assume(kNames[i], "1");
    key(kNames[i], num(*sizes[i]));
  }
  if (gpus_ > 0 && gpus_ % (tp_ * pp_ * cp_) == 0) dp_ = gpus_ / (tp_ * pp_ * cp_);
  if (const std::int64_t dp = whole("dp"); dp > 0) {
    key("dp", num(dp));
    if (dp != dp_ && gpus_ > 0 && !row_.has("tp") && !row_.has("pp")) skip(SkipKind::cell, "tp, pp");
  }
  if (mbs_ == 0 && dp_ > 0 && gbs_ == dp_) mbs_ = 1;  // it follows: one sequence a rank
  if (out_.stack == "maxtext") mbs_ *= tp_ * cp_;     // stated per device (per_device_batch_size)
  if (mbs_ == 0)
    skip(SkipKind::cell, "micro-batch");
  else
    key("micro_batch", num(mbs_));
  if (gbs_ == 0 && pp_ == 1 && mbs_ > 0 && dp_ > 0) {
    gbs_ = mbs_ * dp_;
    assume("gbs", num(gbs_));
  } else if (gbs_ == 0) {
    assume("gbs", "4Mi tokens");
  }
  if (gbs_ > 0) key("global_batch", num(gbs_));
  experts();
  const std::string* zero = cell("zero");
  // torchtitan keeps weights gathered under a pipeline: the same sharding, and the stack knows it.
  const bool kept_gathered = out_.stack == "torchtitan" && pp_ > 1 && zero != nullptr && whole("zero") == 2;
  if (zero != nullptr)
    key("zero", kept_gathered ? "3" : num(whole("zero")));
  else if (dp_ > 1 && stack_ != nullptr)
    assume("zero", num(stack_->zero_default));
  std::int64_t shard = whole("hsdp");
  if (const std::int64_t replicas = whole("replicas"); shard == 0 && replicas > 1 && dp_ % replicas == 0)
    shard = dp_ / replicas;
  if (shard > 0 && shard != dp_ * cp_) {
    key("hsdp", num(shard));
    // Weights are sharded within a slice of TPUs, and slices hold replicas: MaxText's own split of the two networks.
    if (out_.request.on.find("xtpu-") != std::string::npos && pp_ == 1) out_.slice = shard * tp_;
  }
  const std::string* sp = cell("seq_parallel");
  if (sp != nullptr)
    key("sp", *sp == "yes" ? "true" : "false");
  else if (before("2022"))
    key("sp", "false");  // not there before May 2022
  else if (tp_ > 1 && stack_ != nullptr)
    assume("sp", stack_->sp_default ? "yes" : "no");
}

// Megatron splits each expert like a dense layer, etp = tp, unless told otherwise; only with expert sizes of
// their own ("folding"), or where ep x tp does not divide the ranks of a stage, was it told so.
void Builder::experts() {
  const std::int64_t ep = whole("ep");
  const std::int64_t etp = whole("etp");
  const std::string* folding = cell("folding");
  if (ep > 1) key("ep", num(ep));
  if (etp > 0) {
    if (etp > 1) key("etp", num(etp));
    return;
  }
  const bool megatron = out_.stack == "megatron" || out_.stack == "megatron-fsdp";
  if (!megatron || ep <= 1 || tp_ <= 1 || gpus_ == 0) return;
  const bool own_sizes = folding != nullptr && *folding == "yes";
  const bool as_tp = !own_sizes && gpus_ % pp_ == 0 && gpus_ / pp_ % (ep * tp_) == 0;
  if (as_tp) key("etp", num(tp_));
  assume("etp", as_tp ? num(tp_) : "1");
}

// Megatron interleaves where it can, torchtitan where it is said to: layers / pp chunks of a layer each (see
// docs/rows-format.md).
void Builder::default_chunks(std::int64_t pp) {
  const bool megatron = out_.stack == "megatron" || out_.stack == "megatron-fsdp";
  const std::string* schedule = cell("schedule");
  const bool interleaves = megatron || (out_.stack == "torchtitan" && schedule != nullptr);
  if (!interleaves || mbs_ == 0 || dp_ == 0 || gbs_ == 0) {
    if (out_.stack == "torchtitan" || megatron) assume("vpp", "1");  // the others do not interleave
    return;
  }
  std::int64_t vpp = 1;
  const std::int64_t micro = gbs_ / (mbs_ * dp_);
  const std::int64_t slots = layers_ % pp == 0 ? layers_ : (layers_ + 2) % pp == 0 ? layers_ + 2 : 0;
  const std::int64_t most = schedule != nullptr ? slots : layers_;  // stated to interleave: down to a slot a chunk
  for (std::int64_t v = 1; micro % pp == 0 && v * pp <= most; ++v) {
    if (slots % (v * pp) == 0 && slots > 0) vpp = v;
  }
  key("vpp", num(vpp));
  assume("vpp", num(vpp));
}

void Builder::pipeline() {
  const std::int64_t own = whole("vpp");
  const std::string* schedule = cell("schedule");
  const bool plain = schedule != nullptr && *schedule != "interleaved";
  if (own > 1 && pp_ == 1)
    later("vpp", num(own), "no pipeline");
  else if (own > 0)
    key("vpp", num(own));
  else if (pp_ > 1 && !plain)
    default_chunks(pp_);
  const auto it = out_.request.keys.find("vpp");
  const bool chunks = it != out_.request.keys.end() && it->second != "1";
  if (schedule != nullptr && pp_ > 1 && !(*schedule == "1f1b" && chunks) && !(*schedule == "interleaved" && !chunks))
    key("schedule", *schedule);
  const std::string* split = cell("split");
  if (split != nullptr && *split == "slots" && !chunks && pp_ > 1 && layers_ > 0 && (layers_ + 2) % pp_ == 0) {
    std::string list;
    for (std::int64_t i = 0; i < pp_; ++i) {
      const bool end = i == 0 || i == pp_ - 1;
      if (i > 0) list += ',';
      list += num((layers_ + 2) / pp_ - (end ? 1 : 0));
    }
    key("layers_per_stage", list);
  }
  if (const std::string* layout = cell("pp_layout")) later("pp_layout", *layout);
}

}  // namespace preflop::rows
