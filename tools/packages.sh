# Debian's packages that the project needs, and how ./preflop and ./check get them. Sourced by both.

build_packages="g++ cmake ninja-build nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libfast-float-dev"
test_packages="python3 libgtest-dev librapidcheck-dev"
wasm_packages="clang-19 lld-19 llvm-19 wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32
  binaryen"
check_packages="$wasm_packages ccache git clang-tidy-19 clang-format-19 libclang-rt-19-dev
  python3-dev pybind11-dev libbenchmark-dev chromium"

# install_packages NAME...: installs what is missing where it may (root, or sudo without a password),
# else says what is missing and fails. On a system without dpkg it leaves the matter to the build.
install_packages() {
  command -v dpkg-query > /dev/null || return 0
  missing=
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null)" = installed ] || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0

  as_root=
  if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2> /dev/null; then
      as_root="sudo -n"
    else
      as_root=no
    fi
  fi
  if [ "$as_root" = no ] || ! command -v apt-get > /dev/null; then
    echo "preflop: missing Debian packages:$missing" >&2
    echo "install them with: sudo apt-get update && sudo apt-get install --no-install-recommends$missing" >&2
    return 1
  fi
  echo "preflop: installing Debian packages:$missing" >&2
  log=$(mktemp)
  if $as_root apt-get -q -o DPkg::Lock::Timeout=300 update > "$log" 2>&1 \
    && $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
      install --no-install-recommends $missing >> "$log" 2>&1; then
    rm -f "$log"
    return 0
  fi
  cat "$log" >&2
  rm -f "$log"
  echo "preflop: could not install:$missing" >&2
  return 1
}
