// preflop compare A B: two results, read back from their JSON files.
#include "src/view/compare.hpp"

#include "apps/preflop/command.hpp"
#include "apps/preflop/io.hpp"
#include "src/base/json_read.hpp"

namespace preflop::cli {

Result<int> run_compare(const Args& args) {
  if (args.words.size() < 2) return Error{"compare", "two files are compared", "preflop compare A.json B.json"};
  nlohmann::json both[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto text = read_text(args.words[i], i == 0 ? "A" : "B");
    if (!text) return text.error();
    auto json = read_json(*text, args.words[i]);
    if (!json) return json.error();
    both[i] = std::move(json).value();
  }
  const Result<Comparison> found = compare_json(both[0], both[1]);
  if (!found) return found.error();
  if (Status s = emit(
          args, [&] { return compare_json_value(*found); }, [&] { return compare_text(*found, args.has("verbose")); });
      !s)
    return s.error();
  return kDone;
}

}  // namespace preflop::cli
