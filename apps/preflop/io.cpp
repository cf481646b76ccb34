#include "apps/preflop/io.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "src/base/text.hpp"

namespace preflop::cli {

namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin && file != stdout) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, Close>;

Error too_large(const std::string& where, const std::string& name, std::size_t max_bytes) {
  return {where, name + " is larger than " + std::to_string(max_bytes >> 20) + " MiB",
          "a text file, such as a config.json of a few kilobytes"};
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<std::string> read_text(const std::string& path, const std::string& where, std::size_t max_bytes) {
  const bool from_stdin = path == "-";
  const std::string name = from_stdin ? "standard input" : text::quoted(path);
  if (!from_stdin) {
    if (is_folder(path)) return Error{where, name + " is a folder", "a file"};
    std::error_code unknown;
    const auto size = fs::file_size(path, unknown);  // fails for pipes, which are read up to the limit
    if (!unknown && size > max_bytes) return too_large(where, name, max_bytes);
  }
  const File file(from_stdin ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return Error{where, name + " cannot be read: " + std::strerror(errno), ""};
  std::string out;
  char buffer[1 << 16];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;) {
    out.append(buffer, n);
    if (out.size() > max_bytes) return too_large(where, name, max_bytes);
  }
  if (std::ferror(file.get()) != 0) return Error{where, name + " cannot be read", ""};
  if (out.find('\0') != std::string::npos) return Error{where, name + " is a binary file", "a text file"};
  return out;
}

Result<std::map<std::string, std::string>> read_data_dir(const std::string& path) {
  if (!is_folder(path))
    return Error{"--data-dir", text::quoted(path) + " is not a folder",
                 "a folder with gpus.csv, platforms.csv, models.csv or stacks/*.toml"};
  std::map<std::string, std::string> out;
  std::vector<std::string> names = {"gpus.csv",         "platforms.csv", "models.csv", "prices.csv",
                                    "run_defaults.csv", "failures.csv",  "grid.csv"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(path) / "stacks", ignored)) {
    if (entry.path().extension() == ".toml") names.push_back("stacks/" + entry.path().filename().string());
  }
  for (const std::string& name : names) {
    const std::string full = (fs::path(path) / name).string();
    if (!exists(full)) continue;
    Result<std::string> text = read_text(full, "--data-dir");
    if (!text) return text.error();
    out[name] = std::move(text).value();
  }
  if (out.empty())
    return Error{"--data-dir", text::quoted(path) + " has none of the files that preflop reads",
                 "gpus.csv, platforms.csv, models.csv or stacks/*.toml"};
  return out;
}

Status write_text(const std::string& text, const std::string& path) {
  const File file(path.empty() ? stdout : std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return Error{"-o", text::quoted(path) + " cannot be written: " + std::strerror(errno), ""};
  errno = 0;
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0;
  if (whole || errno == EPIPE) return Nothing{};
  return Error{path.empty() ? "" : "-o", "the output cannot be written: " + std::string(std::strerror(errno)), ""};
}

void complain(const std::string& text) { std::fprintf(stderr, "preflop: %s\n", text.c_str()); }

}  // namespace preflop::cli
