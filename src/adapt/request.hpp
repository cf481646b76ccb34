// What a user asked, as text: the one form that flags, recipe files, JSON requests and the web page
// become before anything is checked. Keys are the flag names with underscores ("micro_batch").
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/machine.hpp"
#include "src/adapt/hf_config.hpp"
#include "src/adapt/model_catalogue.hpp"
#include "src/run/run_data.hpp"
#include "src/stack/stack.hpp"
#include "src/step/memory.hpp"

namespace preflop {

// A config.json that the caller has read: the library does no I/O.
struct ConfigText {
  std::string text;
  std::string where;  // path, or "stdin"
};

// What a launch file says and only its cluster or its model completes (settle of src/adapt/import/import.hpp).
struct Unsettled {
  std::int64_t replicas = 0;                         // groups that shard; hsdp is the size of one
  std::int64_t layers_a_chunk = 0, less_layers = 0;  // torchtitan: vpp follows from the model's layers and these
  std::string framework;                             // whose file it is, where no stack here is the framework's
  friend bool operator==(const Unsettled&, const Unsettled&) = default;
};

struct Request {
  std::string model;                                       // id, alias or shape string; empty when `config` is set
  std::optional<ConfigText> config;                        // the text of a config.json
  std::string on;                                          // the grammar of --on
  std::optional<ConfigText> cluster;                       // the text of a cluster TOML, instead of `on`
  std::string default_stack;                               // where no stack is given; empty: what cluster and model ask
  std::map<std::string, std::string, std::less<>> keys;    // recipe keys -> text
  Assume assume;                                           // --assume key=value for the config
  std::vector<std::string> not_read;                       // what a file says beyond the keys, and nobody reads
  std::map<std::string, std::string, std::less<>> places;  // of keys that a file says: "run.sh:3: --num-layers"
  Unsettled unsettled;
};

// A recipe key: its name, the grammar of its value, one line of help. In the order of --help.
struct Key {
  const char* name;   // "micro_batch"; the flag is --micro-batch
  const char* value;  // "N", "NAME", "X%"; empty: a switch, "true" or "false"
  const char* group;  // "batch", "parallel", "numerics", "memory", "run", "stack"
  const char* help;
  const char* not_built;  // a reason when the key is known but not built yet, else empty
};
const std::vector<Key>& request_keys();

// {"model": "llama3-70b", "on": "64xh100-sxm", "tp": 8, ...}; "config" may hold a config.json object.
// Errors: not JSON, an unknown key (did you mean), a value that is no scalar.
Result<Request> request_from_json(std::string_view text);

// Everything a command needs, loaded once. Overlays come from --data-dir: file name -> text.
struct Catalogues {
  MachineCatalogue machines;
  ModelCatalogue models;
  StackCatalogue stacks;
  RunData run;
  static Result<Catalogues> load(const std::map<std::string, std::string>& overlays = {});
};

// The cluster of a request: the file's, else that of `on`.
Result<Cluster> cluster_of(const Request& request, const Catalogues& catalogues);

// The model of a request: that of a config.json, a shape string or the catalogue.
Result<Architecture> model_of(const Request& request, const Catalogues& catalogues);

// A request understood but for its layout: model, cluster, stack, numerics, sequence.
struct Draft {
  Architecture architecture;
  std::unique_ptr<Model> model;  // stable address
  const Stack* stack = nullptr;  // of the catalogues, which must outlive the draft
  Cluster cluster;
  Recipe recipe;
};
Result<Draft> draft(const Request& request, const Catalogues& catalogues);

// A request understood: every value checked, every default chosen and listed in recipe.assumed.
struct Problem {
  Architecture architecture;
  std::unique_ptr<Model> model;  // stable address: `analysed` points at it
  const Stack* stack = nullptr;  // of the catalogues, which must outlive the problem
  Cluster cluster;
  Analysed analysed;  // holds the recipe
};
Result<Problem> pose(const Request& request, const Catalogues& catalogues);

}  // namespace preflop
