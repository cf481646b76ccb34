// models, gpus, platforms, stacks.
#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "src/base/text.hpp"
#include "src/view/catalogue.hpp"

namespace preflop::cli {

namespace {

std::string_view overlay(const std::map<std::string, std::string>& overlays, const char* file) {
  const auto at = overlays.find(file);
  return at == overlays.end() ? std::string_view() : std::string_view(at->second);
}

Result<int> done(const Status& status) {
  if (!status) return status.error();
  return kDone;
}

Result<MachineCatalogue> machines(const std::map<std::string, std::string>& overlays) {
  return MachineCatalogue::load(overlay(overlays, "gpus.csv"), overlay(overlays, "platforms.csv"));
}

// Every value with a source and within its bounds, every name for one thing: exit 3 when not.
Result<int> check_machines(const Args& args, const MachineCatalogue& catalogue) {
  if (!args.words.empty()) return Error{"--check", "checks the whole catalogue, not one GPU", "preflop gpus --check"};
  const std::vector<std::string> wrong = check_catalogue(catalogue);
  const auto text = [&] {
    std::string out;
    for (const std::string& line : wrong) out += line + "\n";
    return out + std::to_string(catalogue.gpus().size()) + " GPUs and " + std::to_string(catalogue.platforms().size()) +
           " platforms: " + (wrong.empty() ? "every value has its source" : std::to_string(wrong.size()) + " faults") +
           "\n";
  };
  const auto json = [&] {
    return nlohmann::json{{"schema", "preflop.check/1"},
                          {"gpus", catalogue.gpus().size()},
                          {"platforms", catalogue.platforms().size()},
                          {"faults", wrong}};
  };
  if (Status s = emit(args, json, text); !s) return s.error();
  return wrong.empty() ? kDone : kNoPlan;
}

// -q: the first line of a card.
std::string card(const Args& args, const std::string& whole) {
  return args.has("quiet") ? whole.substr(0, whole.find('\n') + 1) : whole;
}

}  // namespace

std::vector<Flag> gpus_flags() {
  std::vector<Flag> out = {{"check", "", "every value has a source and is within bounds, else exit 3", "gpus"}};
  for (Flag& flag : output_flags()) out.push_back(std::move(flag));
  return out;
}

Result<int> run_models(const Args& args) {
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  const Result<ModelCatalogue> catalogue = ModelCatalogue::load(overlay(*overlays, "models.csv"));
  if (!catalogue) return catalogue.error();
  if (args.words.empty())
    return done(emit(
        args, [&] { return models_json(*catalogue); }, [&] { return models_text(*catalogue, args.has("verbose")); }));
  const std::string& asked = args.words[0];
  if (asked.ends_with(".json") || asked.find(':') != std::string::npos)
    return Error{"NAME", text::quoted(asked) + " is no name",
                 "a name of preflop models; preflop estimate MODEL --on CLUSTER reads files and shapes"};
  const Result<CatalogueModel> row = catalogue->describe(asked, "NAME");
  if (!row) return row.error();
  const Result<Architecture> architecture = catalogue->find(asked, "NAME");
  if (!architecture) return architecture.error();
  return done(emit(
      args, [&] { return model_json(*row, *architecture); },
      [&] { return card(args, model_text(*row, *architecture)); }));
}

Result<int> run_gpus(const Args& args) {
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  const Result<MachineCatalogue> catalogue = machines(*overlays);
  if (!catalogue) return catalogue.error();
  if (args.has("check")) return check_machines(args, *catalogue);
  if (args.words.empty())
    return done(emit(args, [&] { return gpus_json(*catalogue); }, [&] { return gpus_text(*catalogue); }));
  const Result<const Gpu*> gpu = catalogue->gpu(args.words[0]);
  if (!gpu) return gpu.error();
  return done(emit(args, [&] { return gpu_json(**gpu); }, [&] { return card(args, gpu_text(**gpu)); }));
}

Result<int> run_platforms(const Args& args) {
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  const Result<MachineCatalogue> catalogue = machines(*overlays);
  if (!catalogue) return catalogue.error();
  if (args.words.empty())
    return done(emit(args, [&] { return platforms_json(*catalogue); }, [&] { return platforms_text(*catalogue); }));
  const Result<const Platform*> platform = catalogue->platform(args.words[0]);
  if (!platform) return platform.error();
  return done(
      emit(args, [&] { return platform_json(**platform); }, [&] { return card(args, platform_text(**platform)); }));
}

Result<int> run_stacks(const Args& args) {
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  std::map<std::string, std::string> files;
  for (const auto& [file, text] : *overlays) {
    if (file.starts_with("stacks/")) files[file.substr(7)] = text;
  }
  const Result<StackCatalogue> catalogue = StackCatalogue::load(files);
  if (!catalogue) return catalogue.error();
  if (args.words.empty())
    return done(emit(args, [&] { return stacks_json(*catalogue); }, [&] { return stacks_text(*catalogue); }));
  const Result<const Stack*> stack = catalogue->find(args.words[0]);
  if (!stack) return stack.error();
  return done(emit(args, [&] { return stack_json(**stack); }, [&] { return card(args, stack_card(**stack)); }));
}

Result<int> run_optimizers(const Args& args) {
  if (args.words.empty()) return done(emit(args, [] { return optimizers_json(); }, [] { return optimizers_text(); }));
  const Result<const Optimizer*> optimizer = find_optimizer(args.words[0]);
  if (!optimizer) return optimizer.error();
  return done(
      emit(args, [&] { return optimizer_json(**optimizer); }, [&] { return card(args, optimizer_card(**optimizer)); }));
}

}  // namespace preflop::cli
