// What a launch file leaves to its cluster and its model, and whose line an error is about.
#include <algorithm>

#include "src/adapt/import/fields.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/recipe_keys.hpp"

namespace preflop {

namespace {

std::int64_t size_of(const Request& request, const char* key) {
  const std::string* text = text_of(request, key);
  return text == nullptr ? 1 : std::clamp<std::int64_t>(whole_number(*text), 1, 1 << 20);
}

}  // namespace

Status settle(Request& request, const Catalogues& catalogues) {
  const Unsettled& open = request.unsettled;
  const auto ours = [&](const char* key) { return request.places.contains(key) || !request.keys.contains(key); };
  if (open.replicas > 1 && ours("hsdp")) {
    const auto cluster = cluster_of(request, catalogues);
    const std::int64_t groups = size_of(request, "tp") * size_of(request, "pp") * open.replicas;
    if (cluster && cluster->gpus % groups != 0)
      return Error{
          request.places["hsdp"],
          std::to_string(cluster->gpus) + " GPUs are not a multiple of tp x pp x " + std::to_string(open.replicas),
          "replicas that divide dp x cp"};
    if (cluster) request.keys["hsdp"] = std::to_string(cluster->gpus / groups);
  }
  if (open.layers_a_chunk > 0 && ours("vpp")) {
    const auto model = model_of(request, catalogues);
    if (!model) return model.error();
    const std::int64_t chunks =
                           (model->layer_count() + open.less_layers + open.layers_a_chunk - 1) / open.layers_a_chunk,
                       pp = size_of(request, "pp");
    if (chunks % pp != 0 || chunks / pp < 2)
      return Error{request.places["vpp"],
                   std::to_string(open.layers_a_chunk) + " layers a stage are " + std::to_string(chunks) +
                       " stages of the model, no multiple of pp " + std::to_string(pp) + " above 1",
                   "layers that make so many"};
    request.keys["vpp"] = std::to_string(chunks / pp);
  }
  return Nothing{};
}

Error placed(Error error, const Request& request) {
  for (const auto& [key, place] : request.places) {
    if (error.where != flag_of(key)) continue;
    error.where = place;
    if (request.unsettled.framework.empty() || request.keys.contains("stack") || error.what.find("stack ") != 0) break;
    error.what = request.unsettled.framework + " is not built as a stack, and of what stands for it " + error.what;
    error.valid += (error.valid.empty() ? "" : ", ") + std::string("or --stack textbook");
    break;
  }
  return error;
}

}  // namespace preflop
