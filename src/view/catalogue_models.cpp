#include "src/base/text.hpp"
#include "src/model/model.hpp"
#include "src/view/catalogue.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

Json list(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

std::string line(const std::string& label, const std::string& value) {
  std::string out;
  for (const std::string& part : text::wrapped(value, 60))
    out += (out.empty() ? text::truncated(label, 18) + std::string(20 - std::min<std::size_t>(label.size(), 18), ' ')
                        : std::string(20, ' ')) +
           part + "\n";
  return out;
}

const char* name_of(Activation a) {
  static constexpr const char* kNames[] = {"gelu", "relu", "relu2", "silu"};
  return kNames[static_cast<int>(a)];
}
const char* name_of(NormKind n) {
  static constexpr const char* kNames[] = {"rms", "layer", "layer_no_bias", "none"};
  return kNames[static_cast<int>(n)];
}
const char* name_of(Positions p) {
  static constexpr const char* kNames[] = {"none", "rope", "learned", "alibi"};
  return kNames[static_cast<int>(p)];
}

Json layer_json(const LayerRun& run) {
  const LayerKind& k = run.kind;
  return {{"count", run.count},
          {"heads", k.attention.heads.get()},
          {"kv_heads", k.attention.kv_heads.get()},
          {"head_dim", k.attention.head_dim.get()},
          {"window", k.attention.window ? Json(k.attention.window->get()) : Json(nullptr)},
          {"ffn", k.mlp.width.get()},
          {"gated", k.mlp.gated},
          {"activation", name_of(k.mlp.activation)},
          {"norm", name_of(k.norm)}};
}

Json config_json(const Architecture& a) {
  Json kinds = Json::array();
  for (const LayerRun& run : a.layers) kinds.push_back(layer_json(run));
  return {{"hidden", a.hidden.get()},
          {"layers", a.layer_count()},
          {"vocab", a.vocab.get()},
          {"max_seq", a.max_seq ? Json(a.max_seq->get()) : Json(nullptr)},
          {"positions", name_of(a.positions)},
          {"tied", a.tied},
          {"layer_kinds", kinds}};
}

std::string joined(const std::vector<std::string_view>& items) {
  std::string out;
  for (std::string_view item : items) out += (out.empty() ? "" : ", ") + std::string(item);
  return out;
}

}  // namespace

std::string models_text(const ModelCatalogue& catalogue, bool everything) {
  text::Table table(80);
  table.column("model").column("parameters", text::Table::Align::right).column("Hugging Face id");
  std::size_t refused = 0;
  for (const CatalogueModel& m : catalogue.list()) {
    if (!m.not_built.empty()) ++refused;
    if (!m.not_built.empty() && !everything) continue;
    table.row({std::string(m.id), m.parameters ? text::count(m.parameters->real()) : "-",
               m.not_built.empty() ? std::string(m.hf_id) : std::string(m.not_built)});
  }
  std::string out = table.str();
  if (refused > 0 && !everything)
    out += "\n" + std::to_string(refused) + " more are known but not built yet: preflop models -v\n";
  return out;
}

Json models_json(const ModelCatalogue& catalogue) {
  Json models = Json::array();
  for (const CatalogueModel& m : catalogue.list()) {
    models.push_back({{"id", std::string(m.id)},
                      {"hf_id", m.hf_id.empty() ? Json(nullptr) : Json(std::string(m.hf_id))},
                      {"params_total", m.parameters ? Json(m.parameters->get()) : Json(nullptr)},
                      {"not_built", m.not_built.empty() ? Json(nullptr) : Json(std::string(m.not_built))},
                      {"source", std::string(m.source)}});
  }
  return {{"schema", "preflop.models/1"}, {"models", models}};
}

std::string model_text(const CatalogueModel& row, const Architecture& a) {
  const ModelSummary s = summarise(build_model(a));
  const auto whole = [](Count n) { return text::grouped(n.get()); };
  std::string out = std::string(row.id) + "\n\n";
  out += line("parameters", whole(s.params_total) + ", " + whole(s.params_embedding) + " of them in embedding tables" +
                                (a.tied ? " (tied: the head shares them)" : ""));
  out += line("family", a.family);
  out += line("hidden", whole(a.hidden));
  out += line("vocabulary", whole(a.vocab));
  out += line("sequence", a.max_seq ? whole(*a.max_seq) + " tokens at most" : "not stated");
  for (const LayerRun& run : a.layers) {
    const LayerKind& k = run.kind;
    out +=
        line(text::grouped(run.count) + " layers",
             whole(k.attention.heads) + " heads of " + whole(k.attention.head_dim) + ", " +
                 whole(k.attention.kv_heads) + " kv heads" +
                 (k.attention.window ? ", window " + whole(*k.attention.window) : "") + "; MLP " + whole(k.mlp.width) +
                 (k.mlp.gated ? " gated " : " ") + name_of(k.mlp.activation) + "; norm " + name_of(k.norm));
  }
  if (!row.hf_id.empty()) out += line("Hugging Face", std::string(row.hf_id));
  out += line("also called", joined(row.aliases));
  out += line("source", std::string(row.source));
  for (const std::string& note : a.notes) out += line("note", note);
  return out;
}

Json model_json(const CatalogueModel& row, const Architecture& a) {
  const ModelSummary s = summarise(build_model(a));
  Json aliases = Json::array();
  for (std::string_view alias : row.aliases) aliases.push_back(std::string(alias));
  return {{"schema", "preflop.model/1"},
          {"id", std::string(row.id)},
          {"hf_id", row.hf_id.empty() ? Json(nullptr) : Json(std::string(row.hf_id))},
          {"family", a.family},
          {"params_total", s.params_total.get()},
          {"params_active", s.params_active.get()},
          {"params_embedding", s.params_embedding.get()},
          {"counts", "main"},
          {"config", config_json(a)},
          {"aliases", aliases},
          {"sources", Json::array({std::string(row.source)})},
          {"notes", list(a.notes)}};
}

}  // namespace preflop
