// A model file of any format that this build reads.
#pragma once

#include <string>
#include <string_view>

#include "src/formats/onnx_import.h"
#include "src/graph/graph.h"

namespace plait {

// Decides by the content, not by the name. The message of a failure names the path, what the file is or lacks, and what to do:
// NotFound, IoError (directories, unreadable files), Corrupt (empty, truncated, damaged, not a model), Unsupported (a model of another
// format, operators that this version lacks), InvalidArgument (impossible attributes, shapes that are not fixed). Thread-safe.
Result<Graph> LoadModelFile(const std::string& path, const ImportOptions& options = {});

// The same from bytes, which may be gone afterwards. Unsupported also: graph JSON that names a weights file, because there is no folder to read it from.
Result<Graph> LoadModelBytes(std::string_view bytes, const ImportOptions& options = {});

}  // namespace plait
