# The libraries, one per purpose; docs/adr/0001-libraries.md says why these.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
set(ZLIB_USE_STATIC_LIBS ON)
find_package(ZLIB REQUIRED)
if(NOT GPU_FUZZ)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()

# Debian ships fmt as a shared library only. Its headers carry the whole source, so we compile them
# once into a static library of our own: cheap to use everywhere, nothing to install beside the binary.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(gpu_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt_static.cpp")
  target_compile_features(gpu_fmt PUBLIC cxx_std_20)
  if(GPU_SANITIZE)
    target_compile_options(gpu_fmt PRIVATE -fsanitize=${GPU_SANITIZE})
  endif()
else()
  add_library(gpu_fmt INTERFACE)
  target_link_libraries(gpu_fmt INTERFACE fmt::fmt)
endif()
