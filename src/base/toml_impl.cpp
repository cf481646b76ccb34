// toml++, compiled into the library once (TOML_HEADER_ONLY=0 is set for every target): each of its
// users is spared the parser.
#include <cstddef>
#include <fstream>
#include <string>

#if defined(__wasi__)
// The WebAssembly C++ library declares file streams but has none. toml++'s parse_file, which we never
// call (the library does no I/O), mentions one: here is one that never opens.
template <>
class std::basic_ifstream<char> : public std::istream {
 public:
  basic_ifstream() : std::istream(nullptr) {}
  struct Buffer {
    void pubsetbuf(char*, std::size_t) {}
  };
  Buffer* rdbuf() { return &buffer_; }
  void open(const std::string&, std::ios_base::openmode) {}
  bool is_open() const { return false; }

 private:
  Buffer buffer_;
};
#endif

#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
