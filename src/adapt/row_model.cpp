#include "src/adapt/row_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/adapt/shape_string.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

// Cells of a row and the shape keys that they set.
struct ShapeCell {
  const char* cell;
  const char* key;
};
constexpr std::array kShape = {
    ShapeCell{"layers", "layers"},      ShapeCell{"hidden", "hidden"},           ShapeCell{"heads", "heads"},
    ShapeCell{"kv_heads", "kv_heads"},  ShapeCell{"head_dim", "head_dim"},       ShapeCell{"ffn", "ffn"},
    ShapeCell{"vocab", "vocab"},        ShapeCell{"experts", "experts"},         ShapeCell{"topk", "top_k"},
    ShapeCell{"moe_ffn", "expert_ffn"}, ShapeCell{"dense_layers", "dense_first"}};
constexpr const char* kMegatronGptVocab = "51200";  // 50,257 of GPT-2, padded: Megatron's papers
constexpr std::string_view kNotBuilt = "not built yet (";
constexpr std::int64_t kUsualHeadDim = 128;

// A shape string as keys that keep their order.
struct Shape {
  std::string base;
  std::vector<std::pair<std::string, std::string>> keys;

  static Shape of(std::string_view text) {
    Shape out;
    const std::size_t colon = text.find(':');
    out.base = text.substr(0, colon);
    std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(','));
      const std::size_t equals = std::min(part.find('='), part.size() - 1);
      if (!part.empty()) out.keys.emplace_back(part.substr(0, equals), part.substr(equals + 1));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    return out;
  }
  std::string* find(std::string_view key) {
    for (auto& [k, v] : keys) {
      if (k == key) return &v;
    }
    return nullptr;
  }
  void set(std::string_view key, std::string_view value) {
    if (std::string* old = find(key))
      *old = value;
    else
      keys.emplace_back(key, value);
  }
  void drop(std::string_view key) {
    std::erase_if(keys, [&](const auto& pair) { return pair.first == key; });
  }
  std::string text() const {
    std::string out = base;
    char joint = ':';
    for (const auto& [key, value] : keys) {
      out += joint + key + "=" + value;
      joint = ',';
    }
    return out;
  }
};

std::int64_t whole(const std::string* text) {
  std::int64_t out = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), out);
  return out;
}

// Learned positions are as many as the sequence that was trained.
void fit_positions(const Row& row, Shape& shape) {
  const std::string* seq = row.cell("seq");
  const std::string* positions = shape.find("positions");
  const bool learned = positions != nullptr ? *positions == "learned" : shape.base == "gpt";
  if (!learned || seq == nullptr) return;
  const std::string* stated = shape.find("seq");
  if (stated == nullptr || whole(seq) > whole(stated)) {
    shape.set("seq", *seq);
    shape.drop("position_rows");
  }
}

// Whether the row has experts: its own cells say so, or its family does.
bool has_experts(const Row& row) {
  const std::string* model = row.cell("model");
  return whole(row.cell("experts")) > 1 || row.has("moe_ffn") || (model != nullptr && model->starts_with("mixtral:"));
}

// Whether models of experts can be described at all: the shape string says so itself.
bool experts_built() {
  const std::vector<std::string> keys = shape_keys();
  return std::find(keys.begin(), keys.end(), "experts") != keys.end();
}

// The cells of the row laid over a shape. Sizes that follow from others are dropped where those change.
std::vector<std::string> lay_over(const Row& row, Shape& shape) {
  std::vector<std::string> changed;
  for (const auto& [name, key] : kShape) {
    const std::string* cell = row.cell(name);
    const std::string* own = shape.find(key);
    if (cell == nullptr || (own != nullptr && *own == *cell)) continue;
    const std::string_view size = name;
    if (size == "heads" && !row.has("kv_heads") && own != nullptr) {
      const std::string* kv = shape.find("kv_heads");
      if (kv != nullptr && *kv == *own) shape.drop("kv_heads");
    }
    if ((size == "heads" || size == "hidden") && !row.has("head_dim")) shape.drop("head_dim");
    if (size == "hidden" && !row.has("ffn")) shape.drop("ffn");
    shape.set(key, *cell);
    changed.push_back(size == "layers" ? *cell + " layers" : std::string(name) + " " + *cell);
  }
  // Experts made of a dense model's MLP are as wide as it was.
  const std::string* ffn = shape.find("ffn");
  if (shape.find("experts") != nullptr && shape.find("expert_ffn") == nullptr && ffn != nullptr) {
    shape.set("expert_ffn", std::string(*ffn));
  }
  return changed;
}

bool looks_like_llama(const Row& row, std::string_view family) {
  for (std::string_view name :
       {"llama", "mistral", "qwen", "gemma", "yi-", "olmo", "nemotron", "deepseek", "smollm", "phi-3", "phi3"}) {
    if (family.find(name) != std::string_view::npos) return true;
  }
  const std::int64_t ffn = whole(row.cell("ffn"));
  const bool grouped = row.has("kv_heads") && row.has("heads") && *row.cell("kv_heads") != *row.cell("heads");
  return grouped || (ffn > 0 && ffn != 4 * whole(row.cell("hidden")));
}

// From the cells alone: the family is that of the name before a colon, else what the widths look like.
RowModel from_cells(const Row& row) {
  RowModel out;
  const std::string* model = row.cell("model");
  std::string family = model == nullptr ? "" : text::normalise_name(*model);
  const bool stated = family == "gpt:" || family == "llama:";
  Shape shape;
  shape.base = stated ? family.substr(0, family.size() - 1) : looks_like_llama(row, family) ? "llama" : "gpt";
  if (model != nullptr && !stated) out.assumed.push_back("model");
  lay_over(row, shape);
  for (const char* needed : {"layers", "hidden"}) {
    if (shape.find(needed) == nullptr) {
      out.skip = {SkipKind::cell, model == nullptr ? "model or shape" : stated ? needed : "model unknown: " + *model};
      return out;
    }
  }
  if (shape.find("heads") == nullptr) {
    const std::int64_t hidden = whole(shape.find("hidden"));
    const std::int64_t dim = hidden % kUsualHeadDim == 0 ? kUsualHeadDim : hidden % 64 == 0 ? 64 : hidden;
    shape.set("heads", std::to_string(hidden / dim));
    out.assumed.push_back("heads=" + std::to_string(hidden / dim));
  }
  if (shape.find("vocab") == nullptr) {
    shape.set("vocab", shape.base == "gpt" ? kMegatronGptVocab : "32000");
    out.assumed.push_back("vocab=" + *shape.find("vocab"));
  }
  fit_positions(row, shape);
  out.text = shape.text();
  out.layers = whole(shape.find("layers"));
  out.label = shape.base + ", " + *shape.find("layers") + " layers of " + *shape.find("hidden");
  return out;
}

// A known model that is refused: its reason, or its shape if the row fills in what is missing.
RowModel from_refusal(const Row& row, const CatalogueModel& known) {
  RowModel out;
  const std::string reason(known.not_built);
  out.label = known.id;
  if (reason.starts_with(kNotBuilt)) {
    out.moe = reason.find("mixture of experts") != std::string::npos;
    out.skip = {SkipKind::not_built,
                "architecture not built: " + reason.substr(kNotBuilt.size(), reason.size() - kNotBuilt.size() - 1)};
    return out;
  }
  const std::size_t hint = reason.find("pass gpt:");
  if (hint != std::string::npos) {
    Shape shape = Shape::of(std::string_view(reason).substr(hint + 5));
    lay_over(row, shape);
    if (!row.has("vocab")) {
      shape.set("vocab", kMegatronGptVocab);
      out.assumed.push_back(std::string("vocab=") + kMegatronGptVocab);
    }
    fit_positions(row, shape);
    out.text = shape.text();
    out.layers = whole(shape.find("layers"));
    return out;
  }
  if (row.has("layers") && row.has("hidden")) return from_cells(row);
  out.skip = {SkipKind::cell, "shape of " + std::string(known.id)};
  return out;
}

// An id or an alias; also without what stands in parentheses and without the owner's name.
Result<CatalogueModel> describe(const std::string& name, const ModelCatalogue& models) {
  auto found = models.describe(name);
  if (found) return found;
  if (auto loose = models.describe(loose_name(name))) return loose;
  const std::size_t slash = name.find_last_of('/');
  if (slash != std::string::npos) {
    if (auto bare = models.describe(name.substr(slash + 1))) return bare;
  }
  return found;
}

}  // namespace

const char* name(SkipKind kind) {
  switch (kind) {
    case SkipKind::none:
      return "none";
    case SkipKind::not_built:
      return "not built";
    case SkipKind::cell:
      return "not stated";
    case SkipKind::source:
      return "not a run to predict";
    case SkipKind::illegal:
      return "not legal";
  }
  return "";
}

RowModel row_model(const Row& row, const ModelCatalogue& models) {
  if (has_experts(row) && !experts_built()) {
    RowModel out;
    out.moe = true;
    out.label = row.has("model") ? *row.cell("model") : "mixtral:";
    if (row.has("model")) {
      if (const auto known = describe(out.label, models); known && !known->not_built.empty())
        return from_refusal(row, *known);
    }
    out.skip = {SkipKind::not_built, "architecture not built: mixture of experts"};
    return out;
  }
  const std::string* model = row.cell("model");
  if (model == nullptr || model->ends_with(':')) return from_cells(row);
  if (looks_like_shape(*model)) {
    RowModel out;
    out.text = out.label = *model;
    return out;
  }
  const auto known = describe(*model, models);
  if (!known) return from_cells(row);
  if (!known->not_built.empty()) return from_refusal(row, *known);
  RowModel out;
  out.label = known->id;
  auto base = models.shape_text(known->id);
  Shape shape = Shape::of(base ? *base : std::string());
  const std::string before = shape.text();
  const std::vector<std::string> changed = lay_over(row, shape);
  fit_positions(row, shape);
  out.text = shape.text() == before ? std::string(known->id) : shape.text();
  out.layers = whole(shape.find("layers"));
  for (const std::string& change : changed) out.label += ", " + change;
  out.moe = has_experts(row) || shape.find("experts") != nullptr;
  return out;
}

}  // namespace preflop
