#include "src/base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace plait {
namespace {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Builds the DOM while refusing what nlohmann's parser would accept silently: duplicate keys and deep nesting.
class StrictBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  StrictBuilder(nlohmann::json* root, int max_depth) : dom_(*root, false), max_depth_(max_depth) {}

  bool null() override { return dom_.null(); }
  bool boolean(bool v) override { return dom_.boolean(v); }
  bool number_integer(number_integer_t v) override { return dom_.number_integer(v); }
  bool number_unsigned(number_unsigned_t v) override { return dom_.number_unsigned(v); }
  bool number_float(number_float_t v, const string_t& s) override {
    if (!std::isfinite(v)) return Fail("the number " + s + " is not finite");
    return dom_.number_float(v, s);
  }
  bool string(string_t& v) override { return dom_.string(v); }
  bool binary(binary_t& v) override { return dom_.binary(v); }
  bool start_object(std::size_t n) override {
    keys_.emplace_back();
    return Deeper() && dom_.start_object(n);
  }
  bool key(string_t& k) override {
    if (!keys_.back().insert(k).second) return Fail("the key \"" + k + "\" appears twice in one object");
    return dom_.key(k);
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return dom_.end_object();
  }
  bool start_array(std::size_t n) override { return Deeper() && dom_.start_array(n); }
  bool end_array() override {
    --depth_;
    return dom_.end_array();
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
    // The library's messages begin with its own name for the error, in brackets.
    const std::string_view what = e.what();
    const size_t end_of_name = what.find("] ");
    error_ = StrCat("at byte ", position, ": ", end_of_name == std::string_view::npos ? what : what.substr(end_of_name + 2));
    error_position_ = position;
    return false;
  }

  const std::string& error() const { return error_; }
  size_t error_position() const { return error_position_; }  // of what is no JSON; 0 if it is, but is refused

 private:
  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  bool Deeper() {
    if (++depth_ > max_depth_) return Fail(StrCat("nested deeper than ", max_depth_, " levels"));
    return true;
  }

  nlohmann::detail::json_sax_dom_parser<nlohmann::json> dom_;
  std::vector<std::set<std::string>> keys_;
  int max_depth_;
  int depth_ = 0;
  std::string error_;
  size_t error_position_ = 0;
};

}  // namespace

Result<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  if (path.find('\0') != std::string::npos) return InvalidArgument("the path contains a NUL byte");
  // O_NONBLOCK: opening a FIFO without a writer would block for ever.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) {
    const std::string why = std::strerror(errno);
    return errno == ENOENT ? NotFound(path, ": no such file") : IoError(path, ": cannot be opened: ", why);
  }
  return ReadDescriptor(file.fd(), 0, -1, path, max_bytes);
}

Result<std::string> ReadDescriptor(int fd, int64_t offset, int64_t length, const std::string& what, int64_t max_bytes) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return IoError(what, ": ", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return IoError(what, ": is not a regular file; name one");
  const int64_t size = info.st_size;
  if (offset < 0 || offset > size || length > size - offset) {
    return IoError(what, ": has ", size, " bytes; ", length, " at ", offset, " do not lie inside it");
  }
  const int64_t bytes = length < 0 ? size - offset : length;
  if (bytes > max_bytes) return IoError(what, ": is ", bytes, " bytes, more than the ", max_bytes, " that are read");
  std::string content(static_cast<size_t>(bytes), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::pread(fd, content.data() + done, content.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(what, ": ", std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  content.resize(done);
  return content;
}

Status MakeFolders(const std::string& path) {
  if (path.empty()) return IoError("the folder's name is empty");
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return IoError(part, ": cannot be made: ", std::strerror(errno));
    if (slash == std::string::npos) break;
  }
  return ::access(path.c_str(), W_OK) == 0 ? Status() : IoError(path, ": cannot be written: ", std::strerror(errno));
}

namespace {

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(path, ": cannot be written: ", std::strerror(errno));
    done += static_cast<size_t>(n);
  }
  return Status();
}

}  // namespace

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  struct stat target;
  if (::stat(path.c_str(), &target) == 0 && !S_ISREG(target.st_mode)) {
    // A device or a pipe is written to: a file that took its name would break it for everybody.
    File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.fd() < 0) return IoError(path, ": cannot be written: ", std::strerror(errno));
    return WriteAll(file.fd(), content, path);
  }
  const std::string temporary = StrCat(path, ".tmp.", ::getpid());
  {
    File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.fd() < 0) return IoError(path, ": cannot be written: ", std::strerror(errno));
    Status written = WriteAll(file.fd(), content, path);
    if (written.ok() && ::fsync(file.fd()) != 0) written = IoError(path, ": cannot be written: ", std::strerror(errno));
    if (!written.ok()) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    ::unlink(temporary.c_str());
    return IoError(path, ": cannot be replaced: ", why);
  }
  return Status();
}

Result<nlohmann::json> ParseJson(std::string_view text, const std::string& what, int max_depth) {
  nlohmann::json root;
  StrictBuilder builder(&root, max_depth);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.error_position() > text.size()) {
      return Corrupt(what, ": is not whole JSON: it ends in the middle, after ", text.size(), " bytes; copy or make it again");
    }
    return Corrupt(what, ": is not valid JSON: ", builder.error());
  }
  return root;
}

}  // namespace plait
