#include <algorithm>

#include "src/base/text.hpp"
#include "src/model/model.hpp"
#include "src/view/catalogue.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

std::string line(const std::string& label, const std::string& value) {
  std::string out;
  for (const std::string& part : text::wrapped(value, 60))
    out += (out.empty() ? text::truncated(label, 18) + std::string(20 - std::min<std::size_t>(label.size(), 18), ' ')
                        : std::string(20, ' ')) +
           part + "\n";
  return out;
}

const char* name_of(Activation a) {
  static constexpr const char* kNames[] = {"gelu", "relu", "relu2", "silu", "quick_gelu"};
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

Json experts_json(const ExpertSpec& e) {
  return {{"count", e.count.get()},
          {"top_k", e.top_k.get()},
          {"width", e.width.get()},
          {"gated", e.gated},
          {"activation", name_of(e.activation)},
          {"shared_width", e.shared_width.get()}};
}

Json latent_json(const LatentAttention& l) {
  return {{"q_lora", l.q_lora ? Json(l.q_lora->get()) : Json(nullptr)},
          {"kv_lora", l.kv_lora.get()},
          {"nope_dim", l.nope_dim.get()},
          {"rope_dim", l.rope_dim.get()},
          {"value_dim", l.value_dim.get()}};
}

// "without_input_embedding" for people.
std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string attention_words(const AttentionSpec& a) {
  const auto whole = [](Count n) { return text::grouped(n.get()); };
  std::string out = whole(a.heads) + " heads of " + whole(a.head_dim) + ", ";
  out += a.latent ? "latent of " + whole(a.latent->kv_lora) : whole(a.kv_heads) + " kv heads";
  if (a.window) out += (a.chunked ? ", chunks of " : ", window ") + whole(*a.window);
  if (a.indexer) out += ", at most " + whole(a.indexer->top_k) + " keys";
  return out + (a.sinks ? ", sinks" : "");
}

std::string state_words(const StateSpace& s) {
  const auto whole = [](Count n) { return text::grouped(n.get()); };
  return std::string(name(s.kind)) + " of " + whole(s.heads) + " heads of " + whole(s.dim) + ", " + whole(s.groups) +
         (s.groups.get() == 1 ? " group" : " groups") + ", state " + whole(s.state);
}

std::string feed_forward_words(const LayerKind& k) {
  const auto whole = [](Count n) { return text::grouped(n.get()); };
  if (!k.experts) return "MLP " + whole(k.mlp.width) + (k.mlp.gated ? " gated " : " ") + name_of(k.mlp.activation);
  const ExpertSpec& e = *k.experts;
  std::string out = whole(e.top_k) + " of " + whole(e.count) + " experts of " + whole(e.width) +
                    (e.gated ? " gated " : " ") + name_of(e.activation);
  if (e.shared_width.get() > 0) out += ", shared experts of " + whole(e.shared_width);
  if (e.latent) out += ", on a latent of " + whole(*e.latent);
  return out;
}

std::string layer_words(const LayerKind& k) {
  std::string out;
  if (k.mixes) out = (k.state_space ? state_words(*k.state_space) : attention_words(k.attention)) + "; ";
  if (k.feeds_forward) out += feed_forward_words(k) + "; ";
  return out + "norm " + name_of(k.norm);
}

Json state_json(const StateSpace& s) {
  return {{"kind", name(s.kind)},   {"heads", s.heads.get()}, {"dim", s.dim.get()},    {"groups", s.groups.get()},
          {"state", s.state.get()}, {"conv", s.conv.get()},   {"chunk", s.chunk.get()}};
}

Json layer_json(const LayerRun& run) {
  const LayerKind& k = run.kind;
  const bool attends = k.mixes && !k.state_space, mlp = k.feeds_forward && !k.experts;
  const auto of_attention = [&](Count n) { return attends ? Json(n.get()) : Json(nullptr); };
  return {{"experts", k.experts ? experts_json(*k.experts) : Json(nullptr)},
          {"latent", k.attention.latent ? latent_json(*k.attention.latent) : Json(nullptr)},
          {"sinks", k.attention.sinks},
          {"index_top_k", k.attention.indexer ? Json(k.attention.indexer->top_k.get()) : Json(nullptr)},
          {"chunked", k.attention.chunked},
          {"count", run.count},
          {"heads", of_attention(k.attention.heads)},
          {"kv_heads", of_attention(k.attention.kv_heads)},
          {"head_dim", of_attention(k.attention.head_dim)},
          {"state_space", k.state_space ? state_json(*k.state_space) : Json(nullptr)},
          {"window", k.attention.window ? Json(k.attention.window->get()) : Json(nullptr)},
          {"ffn", mlp ? Json(k.mlp.width.get()) : Json(nullptr)},
          {"gated", k.experts ? k.experts->gated : k.mlp.gated},
          {"activation", name_of(k.experts ? k.experts->activation : k.mlp.activation)},
          {"norm", name_of(k.norm)}};
}

Json config_json(const Architecture& a) {
  Json kinds = Json::array();
  for (const LayerRun& run : a.layers) kinds.push_back(layer_json(run));
  return {{"hidden", a.hidden.get()},
          {"layers", a.layer_count()},
          {"vocab", a.vocab.get()},
          {"max_seq", a.max_seq ? Json(a.max_seq->get()) : Json(nullptr)},
          {"mtp_layers", a.mtp_layers},
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

// Alternating kinds of layers, each once with how often it occurs.
std::vector<LayerRun> layers_by_kind(const Architecture& a) {
  std::vector<LayerRun> out;
  for (const LayerRun& run : a.layers) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const LayerRun& r) { return r.kind == run.kind; });
    if (same == out.end())
      out.push_back(run);
    else
      same->count += run.count;
  }
  return out;
}

std::string model_text(const CatalogueModel& row, const Architecture& a) {
  const ModelSummary s = summarise(build_model(a));
  const auto whole = [](Count n) { return text::grouped(n.get()); };
  std::string out = std::string(row.id) + "\n\n";
  out += line("parameters", whole(s.params_total) + ", " + whole(s.params_embedding) + " of them in embedding tables" +
                                (a.tied ? " (tied: the head shares them)" : ""));
  if (has_experts(build_model(a))) {
    std::string active;
    for (const auto& [convention, count] : active_conventions(build_model(a)))
      active += (active.empty() ? "" : "; ") + whole(count) + " " + spaced(convention);
    out += line("active", active);
  }
  if (a.mtp_layers > 0) {
    const Model model = build_model(a);
    out +=
        line("prediction of", whole(a.mtp_layers) + " more tokens: " + whole(counted_parameters(model, Counted::main)) +
                                  " without, " + whole(counted_parameters(model, Counted::main_mtp)) + " with, " +
                                  whole(counted_parameters(model, Counted::main_mtp_copies)) +
                                  " with copies of embedding and head; this name counts " + name(a.counted));
  }
  out += line("family", a.family);
  out += line("hidden", whole(a.hidden));
  out += line("vocabulary", whole(a.vocab));
  out += line("sequence", a.max_seq ? whole(*a.max_seq) + " tokens at most" : "not stated");
  for (const LayerRun& run : layers_by_kind(a)) {
    const LayerKind& k = run.kind;
    out += line(text::grouped(run.count) + (run.count == 1 ? " layer" : " layers"), layer_words(k));
  }
  if (!row.hf_id.empty()) out += line("Hugging Face", std::string(row.hf_id));
  out += line("also called", joined(row.aliases));
  out += line("source", std::string(row.source));
  for (const std::string& note : a.notes) out += line("note", note);
  return out;
}

Json model_json(const CatalogueModel& row, const Architecture& a) {
  const ModelSummary s = summarise(build_model(a));
  Json active = Json::object();
  for (const auto& [convention, count] : active_conventions(build_model(a))) active[convention] = count.get();
  Json aliases = Json::array();
  for (std::string_view alias : row.aliases) aliases.push_back(std::string(alias));
  return {{"schema", "preflop.model/1"},
          {"id", std::string(row.id)},
          {"hf_id", row.hf_id.empty() ? Json(nullptr) : Json(std::string(row.hf_id))},
          {"family", a.family},
          {"params_total", s.params_total.get()},
          {"params_active", s.params_active.get()},
          {"params_embedding", s.params_embedding.get()},
          {"active_conventions", std::move(active)},
          {"counts", name(a.counted)},
          {"config", config_json(a)},
          {"aliases", aliases},
          {"sources", Json::array({std::string(row.source)})},
          {"notes", Json(a.notes)}};
}

}  // namespace preflop
