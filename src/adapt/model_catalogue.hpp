// The models that are known by name: data/models.csv, compiled in, overlaid by a data directory.
//
// Loading splits and indexes the table; a row becomes an Architecture only when it is asked for. Rows
// of models that are known but not built (experts, state space, ...) or whose shape no source states
// are there too: they are refused with that reason instead of "unknown".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/architecture.hpp"
#include "preflop/result.hpp"
#include "src/adapt/shape_string.hpp"
#include "src/base/csv.hpp"

namespace preflop {

// One row, for listings. Views live as long as the catalogue.
struct CatalogueModel {
  std::string_view id;  // canonical: llama3-70b
  std::vector<std::string_view> aliases;
  std::string_view hf_id;   // empty: not on the Hub
  std::string_view family;  // the config's architecture class; GPT for Megatron's
  std::string_view source;
  std::string_view note;
  std::string_view not_built;       // why it is refused; empty: it can be built
  std::optional<Count> parameters;  // what the shape must count, where a source or formula gives it
  bool exact = false;               // a published exact count agrees, see `note` for differences explained
};

class ModelCatalogue {
 public:
  // `overlay` is the text of models.csv in --data-dir (empty: none): rows of an id that is known replace
  // it, others join. Errors name file and line: columns missing, an id twice, an id that is empty.
  static Result<ModelCatalogue> load(std::string_view overlay = {});

  // By id or alias; case ignored, dot, dash, underscore and space are one separator. Errors: unknown (did
  // you mean, and how to pass config.json), ambiguous (naming both), known but not built (the reason).
  Result<Architecture> find(std::string_view name, std::string_view where = "MODEL") const;
  Result<CatalogueModel> describe(std::string_view name, std::string_view where = "MODEL") const;

  // The same as a shape string, "llama:layers=80,hidden=8192,..", for a model that differs in a few sizes.
  Result<std::string> shape_text(std::string_view name, std::string_view where = "MODEL") const;

  // In the table's order, those that are refused included.
  std::vector<CatalogueModel> list() const;

 private:
  struct Row {
    std::size_t table = 0;  // of tables_
    std::size_t row = 0;
  };
  struct Name {
    std::string normal;
    std::size_t row = 0;  // of rows_
  };

  Status add(std::string_view text, std::string_view file);
  void index();
  std::string_view cell(const Row& row, std::string_view column) const {
    return tables_[row.table].at(row.row, column);
  }
  CatalogueModel describe(const Row& row) const;
  Result<std::size_t> resolve(std::string_view name, std::string_view where) const;
  ShapeKeys shape_keys(const Row& row) const;
  Error unknown(std::string_view name, std::string_view where) const;

  std::vector<Csv> tables_;
  std::vector<Row> rows_;
  std::vector<Name> names_;  // sorted by normal, then row
};

}  // namespace preflop
