#include "src/adapt/model_catalogue.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "src/adapt/shape_string.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {
namespace {

constexpr std::array kShapeColumns = {"layers", "hidden", "heads", "kv_heads", "head_dim",
                                      "ffn",    "vocab",  "seq",   "tied"};
constexpr std::array kColumns = {"id",      "aliases",  "hf_id",    "family",    "base",   "layers", "hidden",
                                 "heads",   "kv_heads", "head_dim", "ffn",       "vocab",  "seq",    "tied",
                                 "details", "params",   "exact",    "not_built", "source", "note"};

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + separator.size());
  }
  return out;
}

// "qk_norm=head window=4096" -> keys and values. The table is ours: a word without '=' is a key
// without a value, which build_shape refuses.
void append_details(std::string_view details, ShapeKeys& keys) {
  for (std::string_view word : split(details, " ")) {
    const std::size_t equals = word.find('=');
    keys.emplace_back(word.substr(0, equals),
                      equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1));
  }
}

}  // namespace

Status ModelCatalogue::add(std::string_view text, std::string_view file) {
  Result<Csv> parsed = Csv::parse(text, file);
  if (!parsed) return parsed.error();
  for (const char* column : kColumns) {
    if (const auto found = parsed->need(column); !found) return found.error();
  }
  const std::size_t table = tables_.size();
  tables_.push_back(std::move(*parsed));
  const std::size_t before = rows_.size();
  for (std::size_t i = 0; i < tables_[table].rows(); ++i) {
    const std::string_view id = tables_[table].at(i, "id");
    if (id.empty()) return Error{tables_[table].where(i), "id is empty", "valid: a name, as in llama3-70b"};
    const auto same = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return cell(row, "id") == id; });
    if (same == rows_.end()) {
      rows_.push_back(Row{table, i});
    } else if (same->table == table || static_cast<std::size_t>(same - rows_.begin()) >= before) {
      return Error{tables_[table].where(i), "id " + text::quoted(id) + " is there twice", "valid: one row per id"};
    } else {
      *same = Row{table, i};
    }
  }
  return Nothing{};
}

void ModelCatalogue::index() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const CatalogueModel model = describe(rows_[i]);
    names_.push_back(Name{text::normalise_name(model.id), i});
    if (!model.hf_id.empty()) names_.push_back(Name{text::normalise_name(model.hf_id), i});
    for (std::string_view alias : model.aliases) names_.push_back(Name{text::normalise_name(alias), i});
  }
  std::sort(names_.begin(), names_.end(),
            [](const Name& a, const Name& b) { return a.normal != b.normal ? a.normal < b.normal : a.row < b.row; });
  names_.erase(std::unique(names_.begin(), names_.end(),
                           [](const Name& a, const Name& b) { return a.normal == b.normal && a.row == b.row; }),
               names_.end());
}

Result<ModelCatalogue> ModelCatalogue::load(std::string_view overlay) {
  ModelCatalogue catalogue;
  catalogue.tables_.reserve(2);
  if (const Status status = catalogue.add(embedded("models.csv"), "models.csv"); !status) return status.error();
  if (!overlay.empty()) {
    if (const Status status = catalogue.add(overlay, "models.csv in the data directory"); !status)
      return status.error();
  }
  catalogue.index();
  return catalogue;
}

CatalogueModel ModelCatalogue::describe(const Row& row) const {
  CatalogueModel model;
  model.id = cell(row, "id");
  model.aliases = split(cell(row, "aliases"), " | ");
  model.hf_id = cell(row, "hf_id");
  model.family = cell(row, "family");
  model.source = cell(row, "source");
  model.note = cell(row, "note");
  model.not_built = cell(row, "not_built");
  if (const Result<Count> params = parse_count(cell(row, "params"), "params")) model.parameters = *params;
  model.exact = !cell(row, "exact").empty();
  return model;
}

std::vector<CatalogueModel> ModelCatalogue::list() const {
  std::vector<CatalogueModel> out;
  for (const Row& row : rows_) out.push_back(describe(row));
  return out;
}

Error ModelCatalogue::unknown(std::string_view name, std::string_view where) const {
  std::vector<std::string> candidates;
  for (const Row& row : rows_) candidates.emplace_back(cell(row, "id"));
  for (const Row& row : rows_) {
    if (!cell(row, "hf_id").empty()) candidates.emplace_back(cell(row, "hf_id"));
  }
  Error error = text::unknown_name(where, "model", name, candidates);
  const bool on_hub = std::count(name.begin(), name.end(), '/') == 1;
  const std::string page =
      on_hub ? "https://huggingface.co/" + std::string(name) + "/raw/main/config.json" : "the model's config.json";
  error.valid += (error.valid.empty() ? "valid: save " : " or save ") + page + " and pass its path";
  return error;
}

Result<std::size_t> ModelCatalogue::resolve(std::string_view name, std::string_view where) const {
  const std::string normal = text::normalise_name(name);
  const auto first = std::lower_bound(names_.begin(), names_.end(), normal,
                                      [](const Name& a, const std::string& b) { return a.normal < b; });
  if (first == names_.end() || first->normal != normal) return unknown(name, where);
  std::vector<std::string> owners;
  for (auto it = first; it != names_.end() && it->normal == normal; ++it) {
    const std::string id(cell(rows_[it->row], "id"));
    if (text::normalise_name(id) == normal) return it->row;  // an id wins over another row's alias
    owners.push_back(id);
  }
  if (owners.size() == 1) return first->row;
  return Error{std::string(where), "model " + text::quoted(name) + " is ambiguous", "valid: " + text::list(owners)};
}

Result<CatalogueModel> ModelCatalogue::describe(std::string_view name, std::string_view where) const {
  const Result<std::size_t> row = resolve(name, where);
  if (!row) return row.error();
  return describe(rows_[*row]);
}

ShapeKeys ModelCatalogue::shape_keys(const Row& row) const {
  ShapeKeys keys;
  for (const char* column : kShapeColumns) {
    if (const std::string_view value = cell(row, column); !value.empty()) keys.emplace_back(column, value);
  }
  append_details(cell(row, "details"), keys);
  return keys;
}

Result<std::string> ModelCatalogue::shape_text(std::string_view name, std::string_view where) const {
  const Result<std::size_t> found = resolve(name, where);
  if (!found) return found.error();
  const Row& row = rows_[*found];
  if (const std::string_view reason = cell(row, "not_built"); !reason.empty()) {
    return Error{std::string(where), std::string(cell(row, "id")) + ": " + std::string(reason), {}};
  }
  std::string out(cell(row, "base"));
  char joint = ':';
  for (const auto& [key, value] : shape_keys(row)) {
    out += joint + std::string(key) + "=" + std::string(value);
    joint = ',';
  }
  return out;
}

Result<Architecture> ModelCatalogue::find(std::string_view name, std::string_view where) const {
  const Result<std::size_t> found = resolve(name, where);
  if (!found) return found.error();
  const Row& row = rows_[*found];
  const std::string id(cell(row, "id"));
  if (const std::string_view reason = cell(row, "not_built"); !reason.empty()) {
    return Error{std::string(where), id + ": " + std::string(reason), {}};
  }
  const ShapeKeys keys = shape_keys(row);
  Result<Architecture> a = build_shape(cell(row, "base"), keys, tables_[row.table].where(row.row));
  if (!a) return a;
  a->name = id;
  a->family = cell(row, "family");
  a->source = "models.csv: " + std::string(cell(row, "source"));
  a->defaulted.clear();  // the table's values, not guesses of ours
  if (const std::string_view note = cell(row, "note"); !note.empty()) a->notes.emplace_back(note);
  return a;
}

}  // namespace preflop
