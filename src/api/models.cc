#include "src/api/models.h"

#include <filesystem>

#include "src/formats/load.h"
#include "src/zoo/zoo.h"

namespace plait {

Result<Graph> LoadModel(const std::string& model, const std::map<std::string, Dims>& shapes) {
  if (model.empty()) return InvalidArgument("MODEL is empty: give a file or a zoo name");
  const bool looks_like_file = model.find('/') != std::string::npos || model.find('.') != std::string::npos;
  for (const ZooEntry& entry : ZooEntries()) {
    if (model == entry.name) {
      if (!shapes.empty()) return InvalidArgument(model, " is a zoo network, whose shapes are fixed: give no shape for its input");
      return BuildZooModel(model);
    }
  }
  ImportOptions options;
  options.shapes = shapes;
  Result<Graph> graph = LoadModelFile(model, options);
  if (graph.ok() || graph.status().code() != PLAIT_NOT_FOUND) return graph;
  if (looks_like_file) {
    std::error_code ignored;  // the file may be there and lack another one, its weights
    if (std::filesystem::exists(model, ignored)) return graph;
    return NotFound(graph.status().message(), "; check the path, or name a built-in network (`plait inspect` lists them)");
  }
  std::string names;
  for (const ZooEntry& entry : ZooEntries()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return NotFound(model, ": there is no such file, and the zoo has no network of that name; it has ", names);
}

}  // namespace plait
